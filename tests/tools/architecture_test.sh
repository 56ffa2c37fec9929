#!/usr/bin/env bash
# docs/architecture.md names only existing classes and folders, and its drawing has all layers in order.
source "$(dirname "$0")/expect.sh"
root=$(cd "$tools/.." && pwd)

# check PAGE: prints a line per error; returns 1 if there is one.
check() {
  local page=$1 bad=0 section name folder count
  complain() { echo "$*"; bad=1; }

  # The drawing: the first word of each row, top to ground.
  local drawn layers
  drawn=$(awk '/^```/ { inside = !inside } inside && /^ *\| [a-z]/ { print $2 }' "$page")
  layers=$(sed -n 's/^layers="\(.*\)"$/\1/p' "$tools/check-layers" | tr ' ' '\n' | tac)
  [[ $drawn == "$layers" ]] ||
    complain "the drawing's layers are not those of tools/check-layers:" $drawn
  for folder in "$root"/src/*/; do
    grep -qx "$(basename "$folder")" <<<"$drawn" || complain "the drawing lacks $(basename "$folder")"
  done

  # The paths: at most twelve classes each, in code font.
  local paths=0
  while IFS= read -r section; do
    paths=$((paths + 1)) count=0
    while IFS= read -r name; do
      count=$((count + 1))
    done < <(classes_of "$section" "$page" | sort -u)
    ((count > 0 && count <= 12)) || complain "$section names $count classes, not 1 to 12"
  done < <(grep '^## Path ' "$page")
  ((paths == 2)) || complain "there are $paths paths, not 2"

  while IFS= read -r name; do
    grep -rqE --include='*.h' "^(class|struct) ([A-Z_]+ )?$name( final)?( :| \{)" "$root/src" "$root/include" ||
      complain "there is no class $name"
  done < <(classes_of '## ' "$page" | sort -u)
  while IFS= read -r folder; do
    [[ -d $root/$folder ]] || complain "there is no folder $folder"
  done < <(grep -oE '`(src|include)/[a-z_/]*`' "$page" | tr -d '`' | sort -u)

  # `Class` (`folder`) and | `folder` | `Class` |: a file of that very folder declares or defines it.
  while read -r name folder; do
    grep -sqE "^(class|struct) ([A-Z_]+ )?$name( final)?( :| \{)|^[^ ].*\b$name::" "$root/$folder"*.h "$root/$folder"*.cc ||
      complain "$name is not in $folder"
  done < <(sed -nE 's/.*`([A-Z][A-Za-z]+)` \(`(src[a-z_/]*)`.*/\1 \2/p; s/.*\| `(src[a-z_/]*)` \| `([A-Z][A-Za-z]+)` \|/\2 \1/p' "$page")
  return $bad
}

# classes_of SECTION PAGE: names like `DataParallel` under headings that begin so.
classes_of() {
  awk -v section="$1" '/^## / { inside = index($0, section) == 1 } inside' "$2" |
    grep -oE '`[A-Z][A-Za-z]+`' | tr -d '`' || true
}

page=$root/docs/architecture.md
expect 0 check "$page"
keeps_quiet

# refuse EDIT COMPLAINT: the page after that sed command is refused.
refuse() {
  sed "$1" "$page" >"$tree/page.md"
  expect 1 check "$tree/page.md"
  says "$2"
}
refuse 's/`Sampler`/`Chooser`/' 'there is no class Chooser'
refuse 's/`WireScale`/`WireScales`/' 'there is no class WireScales'
refuse 's,`src/gradient/wire/` |,`src/gradient/` |,' 'WireScale is not in src/gradient/'
refuse 's,src/engine/failure/,src/engine/failures/,' 'there is no folder src/engine/failures/'
refuse '/^ *| kernels /d' 'the drawing lacks kernels'
refuse 's/^ *| recipe /  | recipes /' "the drawing's layers are not"
refuse 's/^Sparse gradients/`Schedule` `Program`. &/' 'names 14 classes'
refuse 's/^## Path of an image/## Way of an image/' 'there are 1 paths'
