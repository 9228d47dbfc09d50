// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

namespace braid {

// A map from hashes that are spread over all 64 bits. It is a tree of small maps, so it grows in
// small steps: one map of a million entries would have to be sorted anew as a whole now and then,
// which takes a hundred milliseconds.
template <typename Value>
class HashTree {
 public:
  static constexpr size_t kLeafMax = 256;  // entries

  // Stays where it is until the next add() or remove().
  const Value* find(uint64_t hash) const {
    const Node& node = leaf_of(root_, hash);
    const auto found = node.entries.find(hash);
    return found == node.entries.end() ? nullptr : &found->second;
  }
  Value* find(uint64_t hash) {
    Node& node = leaf_of(root_, hash);
    const auto found = node.entries.find(hash);
    return found == node.entries.end() ? nullptr : &found->second;
  }
  bool contains(uint64_t hash) const { return find(hash) != nullptr; }
  // What is there already stays.
  void add(uint64_t hash, Value value) {
    Node* node = &root_;
    unsigned depth = 0;
    uint64_t rest = hash;
    for (; node->children != nullptr; rest <<= kBits, ++depth)
      node = &(*node->children)[child_of(rest)];
    node->entries.try_emplace(hash, std::move(value));
    if (node->entries.size() > kLeafMax && depth < kDepthMax) split(*node, depth);
  }
  // The tree keeps its shape; what is empty in it holds next to nothing.
  void remove(uint64_t hash) {
    Node& node = leaf_of(root_, hash);
    node.entries.erase(hash);
    if (node.entries.empty()) node.entries = {};
  }

 private:
  static constexpr unsigned kBits = 6;
  static constexpr unsigned kDepthMax = 64 / kBits;
  struct Node {
    std::unordered_map<uint64_t, Value> entries;
    std::unique_ptr<std::array<Node, size_t{1} << kBits>> children;  // then it has no entries
  };

  template <typename AnyNode>
  static AnyNode& leaf_of(AnyNode& root, uint64_t hash) {
    AnyNode* node = &root;
    for (uint64_t rest = hash; node->children != nullptr; rest <<= kBits)
      node = &(*node->children)[child_of(rest)];
    return *node;
  }
  static size_t child_of(uint64_t rest) { return rest >> (64 - kBits); }
  static void split(Node& node, unsigned depth) {
    auto entries = std::exchange(node.entries, {});
    node.children = std::make_unique<std::array<Node, size_t{1} << kBits>>();
    while (!entries.empty()) {
      auto entry = entries.extract(entries.begin());
      (*node.children)[child_of(entry.key() << (depth * kBits))].entries.insert(std::move(entry));
    }
  }

  Node root_;
};

}  // namespace braid
