#include "data/data.h"

#include "tests/data/files.h"

namespace sluice::data {
namespace {

std::string refusal(const std::string& spec) { return open_data(spec).status().message(); }

TEST(Data, AWrongNameIsAnErrorThatHelps) {
  EXPECT_EQ(refusal("mnits:/tmp/x"), "there is no data \"mnits:/tmp/x\": did you mean mnist?");
  EXPECT_EQ(refusal("photographs"),
            "there is no data \"photographs\": give demo, mnist:DIR, cifar10:DIR, images:DIR, "
            "pack:FILE, random:SIDE");
  EXPECT_EQ(refusal(""),
            "there is no data \"\": give demo, mnist:DIR, cifar10:DIR, images:DIR, pack:FILE, "
            "random:SIDE");
  EXPECT_EQ(refusal("random:x"),
            "the side of random images must be a whole number from 8 to 512, not \"x\"");
  EXPECT_EQ(refusal("mnist"), "the data \"mnist\" must be given as mnist:DIR");
  EXPECT_EQ(refusal("pack:"), "the data \"pack:\" must be given as pack:FILE");
  EXPECT_EQ(refusal("demo:5"), "the data \"demo:5\" must be given as demo");
  EXPECT_EQ(refusal("demo:"), "the data \"demo:\" must be given as demo");
  EXPECT_EQ(refusal("/tmp"),
            "\"/tmp\" is a folder without the kind of its data: did you mean images:/tmp?");
}

TEST(Data, AnErrorNamesTheMissingFile) {
  EXPECT_EQ(refusal("mnist:/nowhere"),
            "/nowhere has no file train-images-idx3-ubyte or train-images-idx3-ubyte.gz");
  EXPECT_EQ(refusal("cifar10:/nowhere"),
            "/nowhere/data_batch_1.bin cannot be read: No such file or directory");
  EXPECT_EQ(refusal("images:/nowhere"),
            "/nowhere has no folder train with a folder of images for each class");
  EXPECT_EQ(refusal("pack:/nowhere"), "/nowhere cannot be read: No such file or directory");
}

TEST(Data, RandomImagesAreReproducibleAndDiffer) {
  const Data data = open_data("random:16").value();
  const Data again = open_data("random:16").value();
  EXPECT_EQ(data.height, 16);
  EXPECT_EQ(data.channels, 3);
  EXPECT_EQ(data.classes.size(), 10U);
  Image one;
  Image same;
  Image other;
  ASSERT_TRUE(data.train->decode(7, one).ok());
  ASSERT_TRUE(again.train->decode(7, same).ok());
  ASSERT_TRUE(data.validation->decode(7, other).ok());
  EXPECT_EQ(one.pixels, same.pixels);
  EXPECT_NE(one.pixels, other.pixels);
}

TEST(Data, DemoIsReadyToTrain) {
  const Data data = open_data("demo").value();
  EXPECT_GE(data.train->size(), 10000U);
  EXPECT_GE(data.validation->size(), 2000U);
  EXPECT_EQ(data.classes.size(), 10U);
  EXPECT_EQ(data.train->classes(), 10);
  EXPECT_EQ(data.channels, 1);
  EXPECT_EQ(data.height, 28);
  EXPECT_EQ(data.width, 28);
  EXPECT_EQ(data.normalization.mean.size(), 1U);
  Image image;
  ASSERT_TRUE(data.validation->decode(1999, image).ok());
  EXPECT_EQ(image.size(), 28U * 28U);
}

}  // namespace
}  // namespace sluice::data
