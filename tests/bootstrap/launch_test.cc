// Runs `sluice launch` as a user does, and checks its output, failures and exit statuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/base/has.h"
#include "tests/bootstrap/ending.h"
#include "tests/cli/shell.h"

namespace sluice::bootstrap {
namespace {

std::multiset<std::string> lines(const std::string& text) {
  std::multiset<std::string> all;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) all.insert(line);
  return all;
}

TEST(Launch, GivesEveryRankItsNumbers) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 3 -- sh -c 'echo $SLUICE_RANK of $SLUICE_RANKS, $SLUICE_LOCAL_RANK of "
      "$SLUICE_LOCAL_RANKS'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines(outcome.out),
            (std::multiset<std::string>{"[0] 0 of 3, 0 of 3", "[1] 1 of 3, 1 of 3",
                                        "[2] 2 of 3, 2 of 3"}));
  EXPECT_EQ(outcome.err, "");
}

TEST(Launch, EveryJobHasANameAndTokenOfItsOwn) {
  const cli::Outcome outcome = cli::shell(
      "for i in 1 2; do SLUICE launch -n 3 --no-prefix -- sh -c 'echo $SLUICE_JOB $SLUICE_TOKEN'; "
      "done");
  std::map<std::string, int> times;
  for (const std::string& line : lines(outcome.out)) ++times[line];
  ASSERT_EQ(times.size(), 2U) << outcome.out;
  for (const auto& [line, count] : times) {
    EXPECT_EQ(count, 3);
    EXPECT_GE(line.size(), 16U + 1 + 32);
  }
}

const std::string kPrintPlacement =
    "bash -c 'echo $SLUICE_RANK/$SLUICE_RANKS $SLUICE_LOCAL_RANK/$SLUICE_LOCAL_RANKS $MASTER_ADDR "
    "$SLUICE_PORT $SLUICE_JOB ${SLUICE_TOKEN-none}'";

TEST(Launch, NumbersRanksAcrossAllHosts) {
  const std::string command = "SLUICE_TOKEN=ours SLUICE launch -n 2 --hosts 3 --master ";
  const cli::Outcome outcome =
      cli::shell(command + "10.0.0.1:29500 --host 1 -- " + kPrintPlacement);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lines(outcome.out),
            (std::multiset<std::string>{"[2] 2/6 0/2 10.0.0.1 29500 launch-10.0.0.1:29500 ours",
                                        "[3] 3/6 1/2 10.0.0.1 29500 launch-10.0.0.1:29500 ours"}));
  EXPECT_EQ(outcome.err, "");
  const cli::Outcome v6 = cli::shell(command + "[::1]:29500 --host 2 -- " + kPrintPlacement);
  EXPECT_EQ(lines(v6.out),
            (std::multiset<std::string>{"[4] 4/6 0/2 ::1 29500 launch-[::1]:29500 ours",
                                        "[5] 5/6 1/2 ::1 29500 launch-[::1]:29500 ours"}));
}

const std::string kNoToken = "unset SLUICE_TOKEN SLUICE_TOKEN_FILE; ";

TEST(Launch, HostZeroMakesATokenAndPrintsTheLinesForTheOtherHosts) {
  const cli::Outcome outcome = cli::shell(
      kNoToken +
      "cd $(mktemp -d); SLUICE launch -n 1 --no-prefix --hosts 3 --host 0 --master 10.0.0.1:29500 "
      "--deadline 1m -- sh -c 'echo \"$SLUICE_RANK $SLUICE_TOKEN\"' 2>said; cat said >&2; "
      "sed -n 's/^sluice launch: on host [0-9]* run: //p' said | sh");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream out{outcome.out};
  std::string rank;
  std::string token;
  ASSERT_TRUE(out >> rank >> token) << outcome.out;
  EXPECT_EQ(rank, "0");
  EXPECT_EQ(token.size(), 32U);
  EXPECT_EQ(outcome.out, "0 " + token + "\n1 " + token + "\n2 " + token + "\n");
  EXPECT_TRUE(base::has(outcome.err, "sluice launch: on host 2 run: SLUICE_TOKEN=" + token));
  EXPECT_TRUE(base::has(outcome.err,
                        " launch -n 1 --hosts 3 --host 2 --master 10.0.0.1:29500 --deadline 1m "
                        "--no-prefix -- sh -c 'echo \"$SLUICE_RANK $SLUICE_TOKEN\"'\n"))
      << outcome.err;
  const cli::Outcome again =
      cli::shell(kNoToken +
                 "SLUICE launch -n 1 --no-prefix --hosts 2 --host 0 --master a:1 -- printenv "
                 "SLUICE_TOKEN");
  EXPECT_NE(again.out, token + "\n");
}

TEST(Launch, OtherHostsNeedAToken) {
  for (const char* master : {"10.0.0.1:29500", "a:29500", "[fd00::1]:29500"}) {
    const cli::Outcome outcome = cli::shell(
        kNoToken + "SLUICE launch -n 1 --hosts 2 --host 1 --master " + master + " -- true");
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(base::has(
        outcome.err, "host 1 has no token: run the line that `sluice launch` prints on host 0"))
        << outcome.err;
  }
}

TEST(Launch, OnLoopbackAMissingTokenIsAWarning) {
  for (const char* master : {"127.0.0.1:29500", "[::1]:29500", "localhost:29500"}) {
    const auto host = [&](int number) {
      return cli::shell(kNoToken + "SLUICE launch -n 1 --no-prefix --hosts 2 --host " +
                        std::to_string(number) + " --master " + master +
                        " -- sh -c 'echo ${SLUICE_TOKEN-none}'");
    };
    const cli::Outcome first = host(0);
    EXPECT_EQ(first.out, "none\n");
    EXPECT_TRUE(base::has(first.err, "warning: any process that can connect to ")) << first.err;
    const cli::Outcome other = host(1);
    EXPECT_EQ(other.out, "none\n");
    EXPECT_EQ(other.err, "");
  }
}

TEST(Launch, TheTokenIsGivenOrReadFromAFile) {
  const std::string command =
      "launch -n 1 --no-prefix --hosts 2 --host 0 --master a:29500 -- printenv SLUICE_TOKEN";
  const cli::Outcome given = cli::shell("SLUICE_TOKEN=mine SLUICE " + command);
  EXPECT_EQ(given.out, "mine\n");
  EXPECT_EQ(given.err, "");
  const cli::Outcome file =
      cli::shell("f=$(mktemp); echo ' theirs ' >$f; SLUICE_TOKEN_FILE=$f SLUICE " + command +
                 "; SLUICE launch -n 1 --no-prefix --token-file $f --hosts 2 "
                 "--host 0 --master a:1 -- printenv SLUICE_TOKEN; rm $f");
  EXPECT_EQ(file.out, "theirs\ntheirs\n");
  EXPECT_EQ(file.err, "");
}

TEST(Launch, OnSeveralHostsReportsFailuresOfThisHost) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE_TOKEN=t SLUICE launch -n 2 --hosts 2 --host 1 --master a:1 -- bash -c 'if [ "
      "$SLUICE_RANK = 3 ]; then exit 7; fi; sleep 100'");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(
      base::has(outcome.err, "sluice launch: rank 3 exited with status 7; stopping the others"))
      << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, "of this host's 2 ranks, rank 3 failed first: it exited with"))
      << outcome.err;
}

TEST(Launch, SetsTheLogLevelUnlessTheUserHasSetIt) {
  const cli::Outcome outcome = cli::shell(
      "unset SLUICE_LOG; SLUICE launch -n 1 --no-prefix -- printenv SLUICE_LOG; "
      "SLUICE_LOG=other SLUICE launch -n 1 --no-prefix -- printenv SLUICE_LOG");
  EXPECT_EQ(outcome.out, "stderr\nother\n");
}

TEST(Launch, CopiesWholeLinesToTheSameStream) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 4 -- sh -c 'i=0; while [ $i -lt 300 ]; do printf a; printf \"b$i\\n\"; "
      "echo e$i >&2; i=$((i+1)); "
      "done; printf last'");
  ASSERT_EQ(outcome.status, 0);
  std::multiset<std::string> out;
  std::multiset<std::string> err;
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 0; i < 300; ++i) {
      out.insert("[" + std::to_string(rank) + "] ab" + std::to_string(i));
      err.insert("[" + std::to_string(rank) + "] e" + std::to_string(i));
    }
    out.insert("[" + std::to_string(rank) + "] last");
  }
  EXPECT_EQ(lines(outcome.out), out);
  EXPECT_EQ(lines(outcome.err), err);
}

TEST(Launch, PassesArgumentsUnchanged) {
  const cli::Outcome outcome =
      cli::shell("SLUICE launch -n 1 --no-prefix -- printf '%s|' -n 'a b' -- --help '' '*'");
  EXPECT_EQ(outcome.out, "-n|a b|--|--help||*|\n") << outcome.err;
}

TEST(Launch, NamesTheRankThatFailedFirst) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 3 -- sh -c 'if [ $SLUICE_RANK = 1 ]; then "
      "i=1; while [ $i -le 25 ]; do echo line $i >&2; i=$((i+1)); done; exit 7; fi; sleep 100; "
      "exit 9'");
  EXPECT_EQ(outcome.status, 3);
  const std::string sentence =
      "sluice launch: of 3 ranks, rank 1 failed first: it exited with status 7; its last lines";
  ASSERT_TRUE(base::has(outcome.err, sentence)) << outcome.err;
  const std::string shown = outcome.err.substr(outcome.err.find(sentence));
  EXPECT_FALSE(base::has(shown, "line 5\n"));
  EXPECT_TRUE(base::has(shown, "  line 6\n")) << "20 lines";
  EXPECT_TRUE(base::has(shown, "  line 25\n"));
}

TEST(Launch, NamesTheSignalThatKilledARank) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 2 -- sh -c 'if [ $SLUICE_RANK = 0 ]; then kill -SEGV $$; fi; sleep 100'");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(base::has(
      outcome.err,
      "rank 0 failed first: it was killed by SIGSEGV (Segmentation fault) and wrote no error"))
      << outcome.err;
}

// A rank whose peer failed ends with status 3, so it is not the cause. The launcher is stopped
// while the ranks end, so that it finds all of them ended at once.
TEST(Launch, BlamesACrashBeforeThePeersThatItMadeFail) {
  const cli::Outcome outcome = cli::shell(
      "d=$(mktemp -d); SLUICE launch -n 3 -- bash -c 'touch $0/up$SLUICE_RANK; while [ ! -e $0/go "
      "]; do sleep 0.01; "
      "done; if [ $SLUICE_RANK = 2 ]; then kill -ABRT $$; fi; exit $((3 - SLUICE_RANK))' $d & "
      "p=$!; "
      "while [ $(ls $d | wc -l) -lt 3 ]; do sleep 0.01; done; kill -STOP $p; touch $d/go; sleep "
      "0.3; kill -CONT $p; "
      "wait $p; s=$?; rm -r $d; exit $s");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(base::has(outcome.err, "rank 2 failed first: it was killed by SIGABRT"))
      << outcome.err;
}

TEST(Launch, KillsARankThatIgnoresSigtermAfterTheGracePeriod) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 2 -- bash -c 'if [ $SLUICE_RANK = 0 ]; then sleep 0.3; exit 1; fi; trap "
      "\"\" TERM; "
      "echo pid $$; while :; do sleep 1; done'");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, "rank 0 failed first: it exited with status 1"))
      << outcome.err;
  ASSERT_TRUE(base::has(outcome.out, "[1] pid ")) << outcome.out;
  const std::string pid = outcome.out.substr(8, outcome.out.find('\n') - 8);
  EXPECT_NE(kill(std::stoi(pid), 0), 0);
}

TEST(Launch, RefusesWrongInputInOneLine) {
  const auto refused = [](const std::string& line, const std::string& sentence) {
    const cli::Outcome outcome = cli::shell(line);
    EXPECT_EQ(outcome.status, 2) << line;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(base::has(outcome.err, sentence)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  refused("SLUICE launch -n 2 -- no-such-program",
          "there is no program \"no-such-program\" on PATH");
  refused("cd $(mktemp -d); printf '#!/bin/sh\\n' >prog; chmod +x prog; SLUICE launch -n 2 -- prog",
          "write ./prog");
  refused("SLUICE launch -n 2 -- ./no-such-program", "\"./no-such-program\" does not exist");
  refused("SLUICE launch -n 2 -- /", "\"/\" is not a program that can be run");
  refused("f=$(mktemp); printf '#!/no/such/shell\\n' >$f; chmod +x $f; SLUICE launch -n 2 -- $f",
          "cannot be run: No such file");
  refused("SLUICE launch -n 2", "no program to launch: give it after --");
  refused("SLUICE launch -n 0 -- true", "ranks must be a whole number from 1 to 4096, not \"0\"");
  refused("SLUICE launch -n 4097 -- true", "from 1 to 4096");
  refused("SLUICE launch -- true", "--ranks is required");
  const std::string hosts = "SLUICE launch -n 2 --hosts 2 ";
  refused(hosts + "-- true", "give --hosts, --host and --master together");
  refused(hosts + "--host 0 -- true", "give --hosts, --host and --master together");
  refused(hosts + "--host 2 --master a:1 -- true",
          "--host must be a whole number from 0 to 1, not \"2\"");
  refused(hosts + "--host -1 --master a:1 -- true", "--host must be a whole number from 0 to 1");
  refused("SLUICE launch -n 2 --hosts 0 --host 0 --master a:1 -- true", "--hosts must be a whole");
  refused("SLUICE launch -n 256 --hosts 300 --host 0 --master a:1 --token-file /etc/passwd -- true",
          "300 hosts with 256 ranks each: the total must be 1 to 65536 ranks");
  for (const char* master : {"a", ":1", "::1:29500", "[::1]", "[a]:1", "'a b:1'"})
    refused(hosts + "--host 0 --master " + master + " -- true", "is not an address with a port");
  refused(hosts + "--host 0 --master a: -- true", "the port must be a whole number from 1 to");
  refused(hosts + "--host 0 --master a:65536 -- true", "the port must be a whole number from 1 to");
  refused(hosts + "--host 0 --master a:1 --token-file /no/file -- true",
          "the token file \"/no/file\" cannot be read");
  refused("SLUICE launch -n 2 --deadline soon -- true", "\"soon\" is not a duration");
}

TEST(Launch, StopsAtItsDeadline) {
  const cli::Outcome outcome = cli::shell("SLUICE launch -n 2 --deadline 300ms -- sleep 100");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(base::has(outcome.err, "some ranks were still running after 300 ms")) << outcome.err;
}

TEST(Launch, GivesEveryRankItsShareOfCoresAndThreads) {
  const std::string list = "grep Cpus_allowed_list /proc/self/status | tr -d '\\t'";
  const cli::Outcome bound = cli::shell("c=$(nproc); SLUICE launch -n $c --no-prefix -- sh -c \"" +
                                        list + "\" | sort -u | wc -l; echo $c");
  EXPECT_EQ(bound.out.substr(0, bound.out.find('\n')),
            bound.out.substr(bound.out.find('\n') + 1, bound.out.find('\n')));
  const cli::Outcome free = cli::shell("SLUICE launch -n 2 --no-bind --no-prefix -- sh -c \"" +
                                       list + "\" | sort -u | wc -l");
  EXPECT_EQ(free.out, "1\n");
  const cli::Outcome threads = cli::shell(
      "unset OMP_NUM_THREADS; n=$(nproc); SLUICE launch -n $n --no-prefix -- printenv "
      "OMP_NUM_THREADS | sort -u;"
      "SLUICE launch -n $((n + 1)) --no-prefix -- printenv OMP_NUM_THREADS | sort -u;"
      "OMP_NUM_THREADS=5 SLUICE launch -n 2 --no-prefix -- printenv OMP_NUM_THREADS | sort -u");
  EXPECT_EQ(threads.out, "1\n1\n5\n");
}

TEST(Launch, RankZeroReadsStandardInput) {
  const cli::Outcome outcome = cli::shell("echo hello | SLUICE launch -n 2 -- cat");
  EXPECT_EQ(outcome.out, "[0] hello\n");
  EXPECT_EQ(outcome.status, 0);
}

TEST(Launch, DoesNotWaitForProcessesThatARankLeavesRunning) {
  const cli::Outcome outcome = cli::shell("SLUICE launch -n 2 -- sh -c 'sleep 100 & echo $!'", 30);
  EXPECT_EQ(outcome.status, 0);
  std::vector<pid_t> left;
  for (const std::string& line : lines(outcome.out)) left.push_back(std::stoi(line.substr(4)));
  EXPECT_EQ(left.size(), 2U);
  EXPECT_TRUE(all_end(left));
}

std::vector<pid_t> pids_in(const std::string& text) {
  std::vector<pid_t> pids;
  std::istringstream stream{text};
  for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
  return pids;
}

// A shell script that starts the command, waits until its output has `lines` lines, and sends it
// the signal.
std::string signalled(const std::string& command, int lines, const std::string& signal) {
  return "out=$(mktemp); SLUICE " + command + " >$out & p=$!; while [ $(wc -l <$out) -lt " +
         std::to_string(lines) + " ]; do sleep 0.01; done; kill -" + signal +
         " $p; wait $p; s=$?; cat $out; rm $out; exit $s";
}

TEST(LaunchSignals, AreForwardedAndBecomeTheExitStatus) {
  for (const auto& [name, number] :
       {std::pair{"INT", 2}, std::pair{"TERM", 15}, std::pair{"HUP", 1}}) {
    // A shell starts background jobs with SIGINT ignored; bash under `set -m` does not.
    const cli::Outcome outcome = cli::shell(
        "set -m; " + signalled(std::string{"launch -n 2 -- bash -c 'trap \"echo got; exit 0\" "} +
                                   name + "; echo up; while :; do sleep 0.01; done'",
                               2, name));
    EXPECT_EQ(outcome.status, 128 + number) << outcome.err;
    EXPECT_NE(outcome.out.find("[0] got\n"), std::string::npos) << name << outcome.out;
    EXPECT_NE(outcome.out.find("[1] got\n"), std::string::npos) << name << outcome.out;
    EXPECT_EQ(outcome.err.find("failed"), std::string::npos) << outcome.err;
  }
}

TEST(LaunchSignals, RanksMayTakeTheirTimeAfterTheFirstOne) {
  const cli::Outcome outcome = cli::shell(
      signalled("launch -n 2 -- bash -c 'trap \"sleep 1; echo saved $SLUICE_RANK; exit 143\" TERM; "
                "if [ $SLUICE_RANK = 1 ]; then trap \"exit 143\" TERM; fi; echo up; while :; do "
                "sleep 0.01; done'",
                2, "TERM"));
  EXPECT_EQ(outcome.status, 128 + 15);
  EXPECT_NE(outcome.out.find("[0] saved 0\n"), std::string::npos) << outcome.out;
}

TEST(LaunchSignals, ASecondOneKillsTheRanks) {
  const cli::Outcome outcome = cli::shell(
      "out=$(mktemp); SLUICE launch -n 2 --no-prefix -- bash -c 'trap \"echo no\" TERM; echo up; "
      "while :; do sleep 0.01; done' >$out & p=$!;"
      "while [ $(grep -c up $out) -lt 2 ]; do sleep 0.01; done; kill -TERM $p;"
      "while [ $(grep -c no $out) -lt 2 ]; do sleep 0.01; done; kill -TERM $p; wait $p; s=$?; rm "
      "$out; exit $s",
      30);
  EXPECT_EQ(outcome.status, 128 + 15) << outcome.err;
}

TEST(LaunchSignals, UserSignalsAreForwardedAndDoNotEndTheJob) {
  const cli::Outcome outcome = cli::shell(
      signalled("launch -n 2 -- bash -c 'trap \"echo got; exit 0\" USR1; echo up; while :; "
                "do sleep 0.01; done'",
                2, "USR1"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("[1] got\n"), std::string::npos) << outcome.out;
}

TEST(LaunchSignals, RanksAndTheirChildrenDieWithAKilledLauncher) {
  // Each rank is a shell that starts a sleep.
  const cli::Outcome outcome = cli::shell(
      signalled("launch -n 3 --no-prefix -- bash -c 'sleep 1000 & echo $$ $!; trap \"\" TERM "
                "HUP; wait; wait'",
                3, "KILL"));
  const std::vector<pid_t> pids = pids_in(outcome.out);
  ASSERT_EQ(pids.size(), 6U) << outcome.out << outcome.err;
  EXPECT_TRUE(all_end(pids));
}

TEST(LaunchSignals, NoRankSurvivesWhenNobodyReadsTheOutput) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 2 --no-prefix -- bash -c 'while :; do echo $$; sleep 0.01; done' | head -n "
      "20; exit ${PIPESTATUS[0]}",
      30);
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(all_end(pids_in(outcome.out)));
}

}  // namespace
}  // namespace sluice::bootstrap
