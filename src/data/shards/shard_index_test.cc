// SPDX-License-Identifier: Apache-2.0
#include "data/shards/shard_index.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "data/shards/index_shards.h"
#include "data/shards/tar_writer.h"
#include "data/shards/test_tar.h"

namespace tw::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The members of a tar that is read in pieces of this many bytes.
Result<TarContents> members_of(const std::string& tar, std::size_t piece = 100) {
  return tar_members("x.tar", tar.size(), [&](std::uint64_t offset) -> Result<std::string_view> {
    return std::string_view(tar).substr(offset, piece);
  });
}

void put_two_shards(MemoryStore& store) {
  store.objects["a.tar"] =
      test_tar({{"s/1.jpg", "one"}, {"s/1.cls", "1"}, {"README", "no sample"}, {"s/2.jpg", ""}});
  store.objects["b.tar"] = test_tar({{"3.seg.PNG", "three"}, {"3.cls", "3"}});
}

TEST(TarMembers, are_where_their_contents_lie) {
  const std::string tar = test_tar({{"a.txt", "hello"}, {"b/c.cls", ""}, {"d.bin", std::string(600, 'd')}});
  const auto members = members_of(tar);
  ASSERT_TRUE(members) << members.error().message;
  EXPECT_THAT(members.value().members, ElementsAre(TarMember{"a.txt", 512, 5}, TarMember{"b/c.cls", 1536, 0},
                                                   TarMember{"d.bin", 2048, 600}));
  EXPECT_EQ(members.value().doubt, "");
}

TEST(TarMembers, of_what_is_no_whole_tar_are_an_error) {
  const std::string tar = test_tar({{"a.txt", "hello"}, {"d.bin", std::string(600, 'd')}});
  EXPECT_THAT(members_of(tar.substr(0, 2000)).error().message,
              HasSubstr("x.tar: d.bin ends at byte 2136, the file has 2000 (cut off?)"));
  EXPECT_EQ(members_of("\x1f\x8b" + std::string(2000, 'z')).error().message,
            "x.tar: expected a tar file that is not compressed, found gzip");
  EXPECT_THAT(members_of("").error().message, HasSubstr("x.tar: expected a tar file (ustar, GNU or pax)"));
  std::string damaged = tar;
  damaged[1024 + 148] = '7';
  EXPECT_THAT(members_of(damaged).error().message,
              HasSubstr("x.tar: the tar is cut off or damaged near byte 1024: Damaged tar archive"));
  damaged[148] = '7';
  EXPECT_EQ(members_of(damaged).error().message,
            "x.tar: expected a tar file (ustar, GNU or pax); this is none, or its first header is damaged");
}

TEST(TarMembers, may_be_missing_where_a_tar_does_not_end_as_it_should) {
  const std::string one = test_tar({{"1.txt", "hello"}}), whole = one + std::string(8192, '\0');
  EXPECT_EQ(members_of(whole).value().doubt, "");
  const auto cut = members_of(one.substr(0, 1024));
  EXPECT_EQ(cut.value().members.size(), 1U);
  EXPECT_THAT(cut.value().doubt, HasSubstr("no end-of-archive block"));
  const auto joined = members_of(whole + test_tar({{"2.txt", "more"}}));
  EXPECT_EQ(joined.value().members.size(), 1U);
  EXPECT_THAT(joined.value().doubt, HasSubstr("followed by data at byte 10240"));
}

TEST(TarMembers, that_are_folders_are_passed_by_and_links_of_samples_are_refused) {
  const std::string end(1024, '\0'), file = test_member("s/1.txt", "x");
  const auto members =
      members_of(test_member("s.d/", "", '5') + test_member("latest", "", '2', "s") + file + end);
  ASSERT_TRUE(members) << members.error().message;
  EXPECT_THAT(members.value().members, ElementsAre(TarMember{"s/1.txt", 1536, 1}));
  for (const char kind : {'1', '2'})
    EXPECT_THAT(members_of(file + test_member("s/2.txt", "", kind, "s/1.txt") + end).error().message,
                HasSubstr("x.tar: s/2.txt is a link or has holes"));
}

TEST(TarMembers, are_refused_with_names_that_are_too_long) {
  const auto with_name = [](std::size_t length) {
    TarWriter tar;
    EXPECT_TRUE(tar.add(std::string(length - 4, 'n') + ".jpg", "x"));
    return tar.finish().value();
  };
  EXPECT_EQ(members_of(with_name(4096)).value().members.at(0).name.size(), 4096U);
  EXPECT_EQ(
      members_of(with_name(4097)).error().message,
      "x.tar: a member whose name has 4097 bytes, expected at most 4096: " + std::string(40, 'n') + "...");
}

TEST(TarMembers, have_the_keys_and_fields_of_WebDataset) {
  EXPECT_EQ(split_member("a/b.c/000.seg.PNG"), (MemberName{"a/b.c/000", "seg.png"}));
  EXPECT_EQ(split_member("000.jpg"), (MemberName{"000", "jpg"}));
  EXPECT_EQ(split_member("a.b/README"), (MemberName{}));
  EXPECT_EQ(split_member(".hidden"), (MemberName{}));
  EXPECT_EQ(split_member("./0.Jpg"), (MemberName{"./0", "jpg"}));
  EXPECT_EQ(split_member("s/0."), (MemberName{})) << "a field without a name";
  EXPECT_EQ(split_member("__index__/0.jpg"), (MemberName{}));
  EXPECT_EQ(split_member("__0.jpg"), (MemberName{"__0", "jpg"}));
  EXPECT_EQ(split_member("s/._0.jpg"), (MemberName{})) << "not of the sample s/";
}

TEST(ShardIndex, knows_samples_and_fields_of_all_shards) {
  MemoryStore store;
  put_two_shards(store);
  const auto index = index_shards({"a.tar", "b.tar"}, store, {});
  ASSERT_TRUE(index) << index.error().message;
  ASSERT_EQ(index.value().size(), 3U);
  EXPECT_THAT(index.value().field_names(), ElementsAre("jpg", "cls", "seg.png"));
  EXPECT_EQ(index.value().sample(0).key, "s/1");
  EXPECT_EQ(index.value().sample(1).key, "s/2");
  EXPECT_THAT(index.value().sample(1).fields, ElementsAre(FieldPlace{3584, 0, 0}));
  EXPECT_EQ(index.value().sample(2).shard, 1U);
  EXPECT_THAT(index.value().sample(2).fields, ElementsAre(FieldPlace{512, 5, 2}, FieldPlace{1536, 1, 1}));
  EXPECT_EQ(index.value().count_of("cls"), 2U);
}

TEST(ShardIndex, comes_back_from_its_file_and_nothing_else_does) {
  MemoryStore store;
  put_two_shards(store);
  const ShardIndex index = index_shards({"a.tar", "b.tar"}, store, {.contents = true}).value();
  const std::string bytes = index.encode();
  EXPECT_EQ(ShardIndex::decode(bytes).value(), index);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    ASSERT_FALSE(ShardIndex::decode(other)) << i;
    ASSERT_FALSE(ShardIndex::decode(bytes.substr(0, i))) << i;
  }
}

TEST(ShardIndex, identity_is_of_the_data_not_of_the_place) {
  MemoryStore store;
  put_two_shards(store);
  const ShardIndex index = index_shards({"a.tar", "b.tar"}, store, {}).value();
  store.objects["s3://bucket/a.tar"] = store.objects["a.tar"];
  EXPECT_EQ(index_shards({"s3://bucket/a.tar", "b.tar"}, store, {}).value().identity(), index.identity());
  EXPECT_NE(index_shards({"b.tar", "a.tar"}, store, {}).value().identity(), index.identity());
  EXPECT_NE(index_shards({"a.tar"}, store, {}).value().identity(), index.identity());
  const Digest contents = index_shards({"a.tar"}, store, {.contents = true}).value().identity();
  store.objects["a.tar"][512] = 'x';  // of the same size, and so of the same version in this store
  EXPECT_NE(index_shards({"a.tar"}, store, {.contents = true}).value().identity(), contents);
}

TEST(ShardIndex, refuses_what_makes_no_samples) {
  MemoryStore store;
  store.objects["twice.tar"] = test_tar({{"1.jpg", "a"}, {"1.JPG", "b"}});
  store.objects["none.tar"] = test_tar({{"README", "a"}});
  store.objects["key.tar"] = test_tar({{"1.jpg", "a"}, {"1.__KEY__", "b"}});
  store.objects["url.tar"] = test_tar({{"1.__url__", "b"}});
  EXPECT_EQ(
      index_shards({"key.tar"}, store, {}).error().message,
      "key.tar: 1.__KEY__: the field __key__ would replace what a program knows the sample by; rename it");
  EXPECT_THAT(index_shards({"url.tar"}, store, {}).error().message, HasSubstr("url.tar: 1.__url__"));
  EXPECT_EQ(index_shards({"twice.tar"}, store, {}).error().message,
            "twice.tar: 1.JPG is there twice in one sample");
  EXPECT_THAT(index_shards({"none.tar"}, store, {}).error().message, HasSubstr("none.tar: no samples"));
  EXPECT_EQ(index_shards({"away.tar"}, store, {}).error().message, "away.tar: not there");
  EXPECT_EQ(index_shards({"a.tar", "b.tar", "./a.tar"}, store, {}).error().message,
            "./a.tar: named twice; each of its samples would come twice in an epoch");
}

TEST(ShardIndex, refuses_a_shard_that_is_named_twice_as_a_path_and_a_url_or_by_a_link) {
  MemoryStore store;
  const std::filesystem::path folder = testing::TempDir(), file = folder / "shard.tar",
                              link = folder / "link.tar";
  std::filesystem::remove(link);
  std::ofstream(file) << "of no interest";
  std::filesystem::create_symlink("shard.tar", link);
  for (const std::string& other : {"file://" + file.string(), link.string(), "file://" + link.string()})
    EXPECT_EQ(index_shards({file.string(), other}, store, {}).error().message,
              other + ": named twice; each of its samples would come twice in an epoch");
  EXPECT_EQ(index_shards({"s3://bkt/x.tar", "s3://bkt//x.tar"}, store, {}).error().message,
            "s3://bkt/x.tar: not there")
      << "two objects";
}

TEST(ShardIndex, refuses_samples_whose_members_are_not_adjacent) {
  MemoryStore store;
  store.objects["apart.tar"] = test_tar({{"0.txt", "a"}, {"1.txt", "b"}, {"0.cls", "0"}, {"1.cls", "1"}});
  store.objects["again.tar"] = test_tar({{"0.txt", "a"}, {"1.txt", "b"}, {"0.txt", "c"}});
  EXPECT_EQ(index_shards({"apart.tar"}, store, {}).error().message,
            "apart.tar: 0.cls: the sample 0 began before, with other samples between (2 such places in this "
            "shard); members of a sample must be adjacent, and a key may come once (tw data pack and tar "
            "--sort=name write them so)");
  EXPECT_THAT(
      index_shards({"again.tar"}, store, {}).error().message,
      HasSubstr("again.tar: 0.txt: the sample 0 began before, with other samples between (1 such place"));
  put_two_shards(store);
  store.objects["c.tar"] = store.objects["a.tar"];
  EXPECT_TRUE(index_shards({"a.tar", "c.tar"}, store, {})) << "each shard has keys of its own";
}

TEST(ShardIndex, warns_of_what_it_leaves_out) {
  MemoryStore store;
  put_two_shards(store);
  store.objects["c.tar"] =
      test_tar({{"4.cls", "4"}, {"s/.DS_Store", "x"}, {"5.", "x"}, {"__meta__/x.json", "{}"}})
          .substr(0, 4096);
  std::vector<std::string> warnings;
  Indexing how;
  how.warn = [&](const std::string& text) { warnings.push_back(text); };
  EXPECT_EQ(index_shards({"a.tar", "b.tar", "c.tar"}, store, how).value().size(), 4U);
  EXPECT_THAT(warnings,
              ElementsAre("c.tar: it has no end-of-archive block: was it cut off between two members?",
                          "3 files without a key and a field are left out, the first of them a.tar: README"));
}

TEST(Braces, stand_for_all_names) {
  EXPECT_THAT(expand_braces("a-{08..11}.tar").value(),
              ElementsAre("a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"));
  EXPECT_THAT(expand_braces("{x,y}{1..2}").value(), ElementsAre("x1", "x2", "y1", "y2"));
  EXPECT_THAT(expand_braces("plain").value(), ElementsAre("plain"));
  EXPECT_EQ(expand_braces("a{1..2").error().message, "a{1..2: braces that do not match");
  EXPECT_THAT(expand_braces("a{2..1}").error().message, HasSubstr("found {2..1}"));
  EXPECT_EQ(expand_braces("{train,val{0..1}}.tar").error().message,
            "{train,val{0..1}}.tar: braces inside braces are not read; give several names");
  for (const char* text : {"{a..c}", "{0..8..2}"})
    EXPECT_THAT(expand_braces(text).error().message, HasSubstr("letters and steps are not read"));
  EXPECT_THAT(expand_braces("{1..1000}{1..1001}").error().message, HasSubstr("more than 1000000 names"));
}

}  // namespace
}  // namespace tw::data
