// SPDX-License-Identifier: Apache-2.0
#include "messages/job_owner.h"

#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

JobOwner by_token(const std::string& name, const std::string& token, uid_t user = 1000) {
  return job_owner(name, {reinterpret_cast<const uint8_t*>(token.data()), token.size()}, user);
}

TEST(JobOwnerTest, TheSameTokenIsTheSameOwnerWhoeverTheUserIs) {
  EXPECT_EQ(by_token("train", "secret"), by_token("train", "secret"));
  EXPECT_EQ(by_token("train", "secret", 1000), by_token("train", "secret", 1001));
  EXPECT_NE(by_token("train", "secret"), by_token("train", "secret2"));
  EXPECT_NE(by_token("train", "secret"), by_token("other", "secret"));
}

TEST(JobOwnerTest, WithoutATokenTheUserIsTheOwner) {
  EXPECT_EQ(by_token("train", "", 1000), by_token("train", "", 1000));
  for (const uid_t user : {0u, 1001u, 1000u << 8, 1000u << 16})
    EXPECT_NE(by_token("train", "", 1000), by_token("train", "", user)) << user;
  EXPECT_NE(by_token("train", "", 1000), by_token("other", "", 1000));
}

// A trainer chooses the token; with none may it speak for a user.
TEST(JobOwnerTest, NoTokenStandsForAUser) {
  const JobOwner user = by_token("train", "", 0);
  for (const std::string& token : {std::string(1, '\0'), std::string(32, '\0'),
                                   std::string(64, '\0'), std::string("braid job user")})
    EXPECT_NE(by_token("train", token), user);
}

TEST(JobOwnerTest, ComesBackOutOfAMessage) {
  const JobOwner owner = by_token("train", "secret");
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(builder.CreateVector(owner.data(), owner.size()));
  const auto* bytes =
      flatbuffers::GetRoot<flatbuffers::Vector<uint8_t>>(builder.GetBufferPointer());
  const auto parsed = parse_job_owner(bytes).value();
  EXPECT_EQ(parsed, owner);
}

TEST(JobOwnerTest, AnotherNumberOfBytesIsNoOwner) {
  EXPECT_EQ(parse_job_owner(nullptr).status().code(), StatusCode::Protocol);
  for (const size_t size : {0u, 31u, 33u}) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(builder.CreateVector(std::vector<uint8_t>(size, 7)));
    const auto* bytes =
        flatbuffers::GetRoot<flatbuffers::Vector<uint8_t>>(builder.GetBufferPointer());
    EXPECT_EQ(parse_job_owner(bytes).status().code(), StatusCode::Protocol) << size;
  }
}

TEST(JobOwnerTest, AnIdentityIsNameAndOwner) {
  const JobIdentity identity{"train", by_token("train", "secret")};
  JobIdentity other = identity;
  EXPECT_EQ(identity, other);
  other.owner[31] ^= 1;
  EXPECT_NE(identity, other);
  other = identity;
  other.name = "trains";
  EXPECT_NE(identity, other);
}

}  // namespace
}  // namespace braid
