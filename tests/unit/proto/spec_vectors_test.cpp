// SPDX-License-Identifier: Apache-2.0
// What proto/SPEC.md says about hashes and cuts is what the daemon does: proto/vectors.json holds
// examples, and tests/integration/test_spec_vectors.py makes the same from the text alone.
#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/record_cipher.h"
#include "codec/codec_loss.h"
#include "control/flow_keys.h"
#include "engine/exchange.h"
#include "engine/partition.h"
#include "job/tensor_table.h"
#include "messages/job_hash.h"
#include "messages/signature.h"
#include "net/ucx/ucx_sockets.h"
#include "planning/plan_set.h"
#include "update/shard_state.h"
#include "update/update_step.h"

namespace braid {
namespace {

using Json = nlohmann::json;

Json vectors(const char* of) {
  std::ifstream file(BRAID_PROJECT_FOLDER "/proto/vectors.json");
  Json all = Json::parse(file)[of];
  EXPECT_FALSE(all.empty()) << of;
  return all;
}

uint64_t number(const Json& hex) { return std::stoull(hex.get<std::string>(), nullptr, 16); }

template <typename Enum>
Enum named(const Json& name, uint8_t count) {
  for (uint8_t i = 0; i < count; ++i) {
    if (name == to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  ADD_FAILURE() << "no such name: " << name;
  return Enum{};
}

DataType dtype_of(const Json& vector) { return named<DataType>(vector["dtype"], kDataTypeCount); }

Collective collective_of(const Json& vector) {
  return named<Collective>(vector["collective"], kCollectiveCount);
}

// As trainers register them.
uint64_t set_hash(const Json& vector, const JobHash& job) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<proto::TensorDescription>> descriptions;
  for (const Json& tensor : vector["tensors"]) {
    descriptions.push_back(proto::CreateTensorDescriptionDirect(
        builder, tensor["name"].get<std::string>().c_str(), static_cast<uint8_t>(dtype_of(tensor)),
        tensor["count"], tensor["backward_order"], false, true, nullptr,
        tensor.value("state_slots", uint8_t{0})));
  }
  builder.Finish(proto::CreateRegisterTensorsDirect(builder, &descriptions));
  const auto registered = RegisteredTensors::read(
      *flatbuffers::GetRoot<proto::RegisterTensors>(builder.GetBufferPointer()), job,
      CodecKinds().set());
  EXPECT_TRUE(registered.is_ok()) << registered.status().message();
  return registered->set;
}

PlanSet plan_set(const Json& vector, const JobHash& job) {
  std::vector<PlanSet::Tensor> tensors;
  for (const Json& tensor : vector["tensors"]) {
    const std::string name = tensor["name"];
    tensors.push_back({job.of_name(name),
                       std::make_shared<const std::string>(name),
                       dtype_of(tensor),
                       tensor["count"],
                       tensor["backward_order"],
                       {}});
  }
  return {job, 1, std::move(tensors)};
}

uint64_t splits_hash(const Json& vector, const JobHash& job) {
  const auto sum_of = [&](const Json& parts) {
    uint64_t sum = 0;
    for (const Json& part : parts) sum += job.of(JobHash::Splits, {part[0], part[1], part[2]});
    return sum;
  };
  return job.of(JobHash::Splits, {sum_of(vector["expected"]), sum_of(vector["given"])});
}

uint64_t signature_hash(const Json& vector, const JobHash& job) {
  Signature signature;
  signature.collective = collective_of(vector);
  signature.dtype = dtype_of(vector);
  signature.reduction = static_cast<Reduction>(vector["reduction"].get<uint8_t>());
  const auto codec = parse_codec_spec(vector["codec"].get<std::string>());
  EXPECT_TRUE(codec.is_ok()) << vector["codec"];
  signature.codec = *codec;
  signature.owner_step = static_cast<OwnerStepKind>(vector["owner_step"].get<uint8_t>());
  if (vector.contains("updates")) signature.updates = number(vector["updates"]);
  signature.root = vector["root"];
  signature.count = vector["count"];
  signature.group = number(vector["group"]);
  return hash_of(signature, job);
}

// The hash of the entries in this order, as they lie in an arena.
uint64_t updates_hash(const Json& vector) {
  std::vector<UpdateStep> updates;
  for (const Json& hex : vector["entries"]) {
    const std::string text = hex;
    proto::UpdateEntry entry;
    EXPECT_EQ(text.size(), 2 * sizeof(entry));
    for (size_t i = 0; i < sizeof(entry); ++i)
      reinterpret_cast<uint8_t*>(&entry)[i] =
          static_cast<uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
    const auto update = parse_update(entry, DataType::Float32);
    EXPECT_TRUE(update.is_ok()) << update.status().message();
    updates.push_back(*update);
  }
  return hash_of(updates);
}

TEST(SpecVectorsTest, Stripes) {
  for (const Json& vector : vectors("stripes"))
    EXPECT_EQ(stripe_elements_of(vector["elements"], vector["nodes"]), vector["stripe"]) << vector;
}

TEST(SpecVectorsTest, Hashes) {
  for (const Json& vector : vectors("hashes")) {
    const JobHash job(number(vector["job_key"]));
    const std::string of = vector["of"];
    uint64_t hash = 0;
    if (of == "name") hash = job.of_name(vector["name"].get<std::string>());
    if (of == "set") hash = set_hash(vector, job);
    // The first plan makes one group of what is so small.
    if (of == "group") hash = plan_set(vector, job).current().groups.front()->hash;
    if (of == "signature") hash = signature_hash(vector, job);
    if (of == "updates") hash = updates_hash(vector);
    if (of == "messages") hash = job.of(JobHash::Message, {vector["from"], vector["to"]});
    if (of == "splits") hash = splits_hash(vector, job);
    if (of == "model") hash = plan_set(vector, job).tensors_hash();
    EXPECT_EQ(hash, number(vector["hash"])) << vector;
  }
}

TEST(SpecVectorsTest, IoLoops) {
  for (const Json& vector : vectors("io_loops")) {
    const OperationKey key{1, number(vector["tensor"]), number(vector["step"])};
    uint32_t unit = 0;
    for (const uint32_t loop : vector["of_units"])
      EXPECT_EQ(loop_of_unit(key, unit++, vector["loops"]), loop) << vector;
  }
}

// `route`: where the operation goes by another one than around the ring; must outlive it.
Operation operation_of(const Json& vector, Route& route) {
  auto ring = std::make_shared<Ring>();
  ring->ranks_of_node = vector["ranks_of_node"].get<std::vector<uint32_t>>();
  ring->nodes = static_cast<uint32_t>(ring->ranks_of_node.size());
  ring->world_size = std::accumulate(ring->ranks_of_node.begin(), ring->ranks_of_node.end(), 0u);
  Operation operation;
  operation.collective = collective_of(vector);
  operation.dtype = dtype_of(vector);
  operation.count = vector["count"];
  operation.root_node = vector["root_node"];
  operation.is_direct = vector["direct"];
  if (!operation.is_direct && vector["segments"] != ring->nodes) {
    route = halving_route(ring->nodes, 0);
    operation.route = &route;
  }
  operation.ring = std::move(ring);
  return operation;
}

void expect_segment(const Partition& partition, uint32_t unit, uint32_t segment,
                    const Json& sample) {
  EXPECT_EQ(partition.segment(unit, segment).offset, sample["offset"]);
  EXPECT_EQ(partition.segment(unit, segment).bytes, sample["bytes"]);
  ASSERT_EQ(partition.chunks(unit, segment), sample["chunks"].size());
  for (uint32_t i = 0; i < sample["chunks"].size(); ++i) {
    const Extent chunk = partition.chunk(unit, segment, i);
    EXPECT_EQ(Json::array({chunk.offset, chunk.bytes}), sample["chunks"][i]);
  }
}

TEST(SpecVectorsTest, Cuts) {
  for (const Json& vector : vectors("cuts")) {
    SCOPED_TRACE(vector["what"]);
    Route route;
    const Operation operation = operation_of(vector, route);
    const Partition partition(operation, vector["unit_bytes"], vector["chunk_bytes"]);
    EXPECT_EQ(partition.segments(), vector["segments"]);
    ASSERT_EQ(partition.units(), vector["units"]);
    for (const Json& sample : vector["samples"])
      expect_segment(partition, sample["unit"], sample["segment"], sample);
  }
}

// What the first node of a ring has for the second one.
TEST(SpecVectorsTest, Streams) {
  for (const Json& vector : vectors("streams")) {
    SCOPED_TRACE(vector["what"]);
    const uint32_t nodes = vector["nodes"];
    auto ring = std::make_shared<Ring>();
    ring->nodes = ring->world_size = nodes;
    ring->ranks_of_node.assign(nodes, 1);
    ring->block_of_rank.resize(nodes);
    std::iota(ring->block_of_rank.begin(), ring->block_of_rank.end(), 0u);
    std::vector<uint64_t> to(nodes, 0);
    to[1] = vector["bytes"];
    auto exchange = std::make_shared<Exchange>(*ring, 1);
    const uint8_t input = 0;  // nobody looks at it
    exchange->add(0,
                  std::make_shared<const Splits>(SplitCounts(to),
                                                 SplitCounts(std::vector<uint64_t>(nodes, 0))),
                  &input);
    uint8_t* result = nullptr;
    exchange->place(std::span(&result, 1));
    Operation operation;
    operation.collective = Collective::AllToAll;
    operation.exchange = std::move(exchange);
    operation.ring = std::move(ring);
    const Partition partition(operation, vector["unit_bytes"], vector["chunk_bytes"]);
    ASSERT_EQ(partition.units(), vector["units"]);
    for (const Json& sample : vector["samples"])
      expect_segment(partition, sample["unit"], nodes + 1, sample);
  }
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::vector<uint8_t> bytes_of_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

TEST(SpecVectorsTest, Records) {
  for (const Json& vector : vectors("records")) {
    Sha256Digest key{};
    std::ranges::copy(bytes_of_hex(vector["key"]), key.begin());
    RecordCipher cipher(key, vector["records_per_key"]);
    for (const Json& record : vector["records"]) {
      const auto plain = bytes_of_hex(record["plain"]);
      const std::span<const uint8_t> part = plain;
      std::vector<uint8_t> sealed(plain.size());
      std::array<uint8_t, RecordCipher::kTagBytes> tag{};
      ASSERT_TRUE(
          cipher.seal(bytes_of_hex(record["clear"]), std::span(&part, 1), sealed, tag).is_ok());
      EXPECT_EQ(hex(sealed), record["sealed"].get<std::string>());
      EXPECT_EQ(hex(tag), record["tag"].get<std::string>());
    }
  }
}

TEST(SpecVectorsTest, FlowKeys) {
  for (const Json& vector : vectors("flow_keys")) {
    const LinkKey link =
        make_link_key(bytes_of_hex(vector["cluster_key"]), number(vector["opener"]),
                      number(vector["receiver"]), number(vector["nonce"]));
    const FlowKeys keys(link, vector["io_loop"], vector["flow"], vector["generation"]);
    const uint16_t port = vector["port"];
    EXPECT_EQ(hex(keys.proof_key), vector["proof_key"].get<std::string>());
    EXPECT_EQ(hex(keys.cipher_key), vector["cipher_key"].get<std::string>());
    EXPECT_EQ(keys.chunk_token, number(vector["chunk_token"]));
    EXPECT_EQ(hex(flow_proof(keys.proof_key, FlowProofOf::Connecting, port)),
              vector["connecting"].get<std::string>());
    EXPECT_EQ(hex(flow_proof(keys.proof_key, FlowProofOf::Listening, port)),
              vector["listening"].get<std::string>());
  }
}

TEST(SpecVectorsTest, EncryptedConnections) {
  for (const Json& vector : vectors("encrypted_connections")) {
    Sha256Digest proof_key{};
    Sha256Digest cipher_key{};
    FlowSalts salts;
    std::ranges::copy(bytes_of_hex(vector["proof_key"]), proof_key.begin());
    std::ranges::copy(bytes_of_hex(vector["cipher_key"]), cipher_key.begin());
    for (const auto side : {FlowProofOf::Connecting, FlowProofOf::Listening}) {
      const std::string name = side == FlowProofOf::Connecting ? "connecting" : "listening";
      std::ranges::copy(bytes_of_hex(vector[name + "_salt"]), salts.own(side).begin());
      EXPECT_EQ(hex(flow_proof(proof_key, side, vector["port"], salts.known_to(side))),
                vector[name].get<std::string>());
      EXPECT_EQ(hex(flow_record_key(cipher_key, side, salts)),
                vector[name + "_key"].get<std::string>());
    }
  }
}

TEST(SpecVectorsTest, Sketches) {
  for (const Json& vector : vectors("sketches")) {
    for_sketch_buckets(vector["element"], 1, [&](uint64_t, uint64_t bucket, double sign) {
      EXPECT_EQ(bucket, vector["bucket"]) << vector;
      EXPECT_EQ(sign, vector["sign"]) << vector;
    });
  }
}

}  // namespace
}  // namespace braid
