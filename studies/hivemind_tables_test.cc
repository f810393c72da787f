// SPDX-License-Identifier: Apache-2.0
#include "studies/hivemind_tables.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tw::studies {
namespace {

/// A folder with small tables of the same form.
class TablesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "/tables";
    std::filesystem::create_directories(folder);
    write("experiments.csv",
          "exp_id,group,domain,model,params_m,tbs,peers,micro_batch,global_sps,local_sps,comm_s,granularity_"
          "wall,"
          "flags\n"
          "one,B,CV,CONV,197.8,32768,1xT4@gc:us;1xT4@gc:eu,32,68,70,18,25,\n"
          "two,A,CV,CONV,197.8,32768,2xT4@gc:us,32,68,80,18,25,\n"
          "failed,A,CV,CONV,197.8,32768,2xT4@gc:us,32,68,10,18,25,unstable_averaging\n"
          "far,C,CV,RN18,11.7,32768,1xT4@gc:us;1xT4@moon:sea,32,68,70,18,25,\n");
    write("baselines.csv",
          "model,gpu,sps_wall,used_in_paper,note\n"
          "CONV,T4,40,yes,\"one, alone\"\nCONV,T4,90,no,\nRN18,T4,100,yes,\n");
    write("network.csv", "src,dst,gbit_s,rtt_ms\ngc:us,gc:eu,0.2,100\ngc:us,gc:us,7,1\n");
    write("multistream.csv", "src,dst,gbit_s,rtt_ms\ngc:eu,gc:us,6,100\n");
  }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder + "/" + name) << text; }

  std::string folder;
};

TEST_F(TablesTest, become_a_run_without_what_was_measured_of_it) {
  const Reference reference = read_reference(folder).value();
  const HivemindRun run = hivemind_run(reference, reference.runs[0], {}).value();
  ASSERT_EQ(run.peers.size(), 2U);
  EXPECT_DOUBLE_EQ(run.peers[0].samples_per_s, 40);  // 80 of two machines, the one other run that counts
  EXPECT_DOUBLE_EQ(run.streams[0][1].bytes_per_s, 25e6);
  EXPECT_DOUBLE_EQ(run.streams[1][0].bytes_per_s, 25e6);  // as in the other direction
  EXPECT_TRUE(run.streams[0][1].wanders);
  EXPECT_DOUBLE_EQ(run.peers[0].nic_bytes_per_s, 875e6);
  EXPECT_DOUBLE_EQ(run.peers[1].nic_bytes_per_s, 750e6);
  EXPECT_EQ(run.tensors, 344);
}

TEST_F(TablesTest, accumulating_costs_passes_over_memory) {
  const Reference reference = read_reference(folder).value();
  const double microbatch_s = 32.0 / 40 + 3 * 197.8e6 * 4 / 320e9;
  EXPECT_NEAR(speed_from_baseline(reference, reference.runs[0], "T4", 3).value(), 32 / microbatch_s, 1e-9);
  EXPECT_FALSE(speed_from_baseline(reference, reference.runs[0], "H100", 3).has_value());
}

TEST_F(TablesTest, say_what_they_lack) {
  const Reference reference = read_reference(folder).value();
  EXPECT_EQ(hivemind_run(reference, reference.runs[3], {}).error().message,
            "far: no measurement between gcp:us and moon:sea");
  EXPECT_FALSE(reference.runs[2].clean);
  write("network.csv", "src,dst,gbit_s,rtt_ms\ngc:us,gc:eu,0.2\n");
  EXPECT_EQ(read_reference(folder).error().message,
            folder + "/network.csv:2: 3 fields, expected 4 as in the header: src,dst,gbit_s,rtt_ms");
  EXPECT_EQ(read_reference("/nowhere").error().message,
            "/nowhere/experiments.csv: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace tw::studies
