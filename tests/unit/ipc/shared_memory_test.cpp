// SPDX-License-Identifier: Apache-2.0
#include "ipc/shared_memory.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary_directory.h"

namespace braid {
namespace {

constexpr uint64_t kBytes = 1 << 20;

Fd duplicate(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

SharedMemory make_memory(uint64_t bytes, SharedMemory::Access access, const char* name = "test") {
  auto made = SharedMemory::create(name, bytes, access);
  EXPECT_TRUE(made) << made.status().message();
  return std::move(made).value();
}

SharedMemory adopt_memory(const SharedMemory& made, SharedMemory::Access access) {
  auto adopted =
      SharedMemory::adopt(duplicate(made.fd()), made.size(), made.size(), access, "test");
  EXPECT_TRUE(adopted) << adopted.status().message();
  return std::move(adopted).value();
}

Status adopt_error(Fd fd, uint64_t bytes = kBytes, uint64_t bytes_max = kBytes) {
  auto memory = SharedMemory::adopt(std::move(fd), bytes, bytes_max, SharedMemory::Access::ReadOnly,
                                    "input arena");
  EXPECT_FALSE(memory);
  EXPECT_NE(memory.status().message().find("input arena"), std::string::npos)
      << memory.status().message();
  return memory.status();
}

// Huge bytes of this process's mappings of the file.
uint64_t huge_bytes_of(const std::string& file) {
  std::ifstream smaps("/proc/self/smaps");
  uint64_t kilobytes = 0;
  bool is_file = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(':')) is_file = line.find(file) != std::string::npos;
    if (is_file && line.starts_with("ShmemPmdMapped:"))
      kilobytes += std::stoull(line.substr(line.find(':') + 1));
  }
  return kilobytes << 10;
}

TEST(SharedMemoryTest, WhatOneSideWritesTheOtherReads) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
  std::memcpy(made.data() + 4096, "hello", 6);
  EXPECT_STREQ(reinterpret_cast<const char*>(adopted.data() + 4096), "hello");
}

// In a child: the limit stays with a process.
TEST(SharedMemoryTest, BeyondTheLimitOfFilesItNamesTheLimit) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit files{kBytes, kBytes};
    ::signal(SIGXFSZ, SIG_DFL);
    if (::setrlimit(RLIMIT_FSIZE, &files) != 0) ::_exit(2);
    const auto fits = SharedMemory::create("test", kBytes, SharedMemory::Access::ReadOnly);
    const auto larger = SharedMemory::create("test", kBytes + 1, SharedMemory::Access::ReadOnly);
    const std::string text = larger.status().message();
    const bool is_right = fits && larger.status().code() == StatusCode::ResourceExhausted &&
                          text.find("files of 1048576 bytes") != std::string::npos &&
                          text.find("'ipc_test'") != std::string::npos &&
                          text.find("'ulimit -f unlimited'") != std::string::npos;
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SharedMemoryTest, SizeIsSealed) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadWrite);
  EXPECT_EQ(::ftruncate(made.fd(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(made.fd(), 2 * kBytes), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(made.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(SharedMemoryTest, PeersMayWriteOnlyWhereTheyShould) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  auto writable = SharedMemory::adopt(duplicate(made.fd()), kBytes, kBytes,
                                      SharedMemory::Access::ReadWrite, "test");
  EXPECT_FALSE(writable);
  EXPECT_EQ(::pwrite(made.fd(), "x", 1, 0), -1);
  made.data()[0] = 1;  // its maker still may

  SharedMemory shared = make_memory(kBytes, SharedMemory::Access::ReadWrite);
  SharedMemory other = adopt_memory(shared, SharedMemory::Access::ReadWrite);
  other.data()[17] = 42;
  EXPECT_EQ(shared.data()[17], 42);
}

TEST(SharedMemoryTest, ReserveGetsMemoryWithinItsSizeOnly) {
  SharedMemory made = make_memory(64 * kBytes, SharedMemory::Access::ReadOnly);
  struct stat before {};
  ASSERT_EQ(::fstat(made.fd(), &before), 0);
  EXPECT_EQ(before.st_blocks, 0);
  EXPECT_TRUE(made.reserve(kBytes, 10 * kBytes));
  struct stat after {};
  ASSERT_EQ(::fstat(made.fd(), &after), 0);
  EXPECT_EQ(static_cast<uint64_t>(after.st_blocks) * 512, 10 * kBytes);
  EXPECT_FALSE(made.reserve(64 * kBytes, 1));
  EXPECT_FALSE(made.reserve(1, UINT64_MAX));
}

TEST(SharedMemoryTest, WhatIsGivenBackCanBeReservedAgain) {
  SharedMemory made = make_memory(8 * kHugePageBytes, SharedMemory::Access::ReadOnly);
  SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
  ASSERT_TRUE(made.reserve(0, 4 * kHugePageBytes));
  EXPECT_EQ(made.memory_bytes(), 4 * kHugePageBytes);
  std::memset(made.data(), 1, 4 * kHugePageBytes);
  ASSERT_TRUE(made.give_back(kHugePageBytes, 2 * kHugePageBytes));
  EXPECT_EQ(made.memory_bytes(), 2 * kHugePageBytes);
  EXPECT_EQ(adopted.memory_bytes(), 2 * kHugePageBytes);
  EXPECT_EQ(adopted.data()[kHugePageBytes - 1], 1);
  EXPECT_EQ(adopted.data()[3 * kHugePageBytes], 1);
  ASSERT_TRUE(made.reserve(kHugePageBytes, 2 * kHugePageBytes));
  EXPECT_EQ(made.memory_bytes(), 4 * kHugePageBytes);
  EXPECT_EQ(adopted.data()[kHugePageBytes], 0);
  made.data()[kHugePageBytes] = 2;
  EXPECT_EQ(adopted.data()[kHugePageBytes], 2) << "both map the new pages";
  EXPECT_FALSE(made.give_back(made.size(), 1));
}

TEST(SharedMemoryTest, PeersCannotGiveItBack) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
  ASSERT_TRUE(made.reserve(0, kBytes));
  EXPECT_FALSE(adopted.give_back(0, kBytes));
  EXPECT_EQ(made.memory_bytes(), kBytes);
  EXPECT_NE(::mprotect(adopted.data(), kBytes, PROT_READ | PROT_WRITE), 0);
}

// Another user who has the descriptor cannot open its file again for writing.
TEST(SharedMemoryTest, OnlyItsOwnerOpensItAgain) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  struct stat info {};
  ASSERT_EQ(::fstat(made.fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400U);
  EXPECT_EQ(::fcntl(made.fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
}

TEST(SharedMemoryTest, LargeMemoryComesAsHugePages) {
  SharedMemory made =
      make_memory(4 * kHugePageBytes + kBytes, SharedMemory::Access::ReadOnly, "test-huge");
  SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(made.data()) % kHugePageBytes, 0U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(adopted.data()) % kHugePageBytes, 0U);
  // Parts that do not end on a border, and the end of the memory, stay small pages.
  ASSERT_TRUE(made.reserve(kBytes, 2 * kHugePageBytes).is_ok());
  ASSERT_TRUE(made.reserve(3 * kHugePageBytes, kHugePageBytes + kBytes).is_ok());
  for (uint64_t at = 0; at < made.size(); at += kBytes) {
    EXPECT_EQ(made.data()[at], 0);
    made.data()[at] = static_cast<uint8_t>(at / kBytes % 251);
  }
  for (uint64_t at = 0; at < made.size(); at += kBytes)
    ASSERT_EQ(adopted.data()[at], at / kBytes % 251) << at;
  const uint64_t huge = huge_bytes_of("/memfd:test-huge");
  if (huge == 0) GTEST_SKIP() << "this kernel gives shared memory no huge pages";
  EXPECT_EQ(huge, 2 * 2 * kHugePageBytes) << "two blocks, in both mappings";
}

TEST(SharedMemoryTest, CreateRefusesImpossibleSizes) {
  EXPECT_FALSE(SharedMemory::create("test", 0, SharedMemory::Access::ReadOnly));
  EXPECT_FALSE(SharedMemory::create("test", UINT64_MAX, SharedMemory::Access::ReadOnly));
}

TEST(SharedMemoryTest, RefusesAnotherSizeThanAnnounced) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  EXPECT_NE(adopt_error(duplicate(made.fd()), kBytes / 2).message().find("announced"),
            std::string::npos);
  EXPECT_NE(adopt_error(duplicate(made.fd()), 2 * kBytes, 4 * kBytes).message().find("announced"),
            std::string::npos);
}

TEST(SharedMemoryTest, RefusesMoreThanTheLimit) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  EXPECT_NE(adopt_error(duplicate(made.fd()), kBytes, kBytes - 1).message().find("allowed"),
            std::string::npos);
  EXPECT_NE(adopt_error(duplicate(made.fd()), 0).message().find("allowed"), std::string::npos);
}

TEST(SharedMemoryTest, RefusesAMemfdThatMayShrink) {
  Fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
  EXPECT_NE(adopt_error(duplicate(fd.get())).message().find("shrink"), std::string::npos);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_NE(adopt_error(std::move(fd)).message().find("shrink"), std::string::npos);
}

TEST(SharedMemoryTest, RefusesWhatIsNoMemfd) {
  const TemporaryDirectory directory;
  Fd file(::open(directory.file("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), kBytes), 0);
  EXPECT_FALSE(adopt_error(
      std::move(file)));  // on a tmpfs it has seals, but none that keeps it from shrinking

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd write_end(ends[1]);
  EXPECT_NE(adopt_error(Fd(ends[0])).message().find("memfd"), std::string::npos);
  EXPECT_NE(adopt_error(Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC))).message().find("memfd"),
            std::string::npos);
  EXPECT_FALSE(adopt_error(Fd()));
}

// Where no huge page is free the first touch of one is a SIGBUS.
TEST(SharedMemoryTest, RefusesHugePages) {
  Fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!fd.is_valid()) GTEST_SKIP() << "this kernel has no huge pages";
  ASSERT_EQ(::ftruncate(fd.get(), kHugePageBytes), 0);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  const Status error = adopt_error(std::move(fd), kHugePageBytes, kHugePageBytes);
  EXPECT_NE(error.message().find("MFD_HUGETLB"), std::string::npos) << error.message();
}

TEST(SharedMemoryTest, MovesItsMemory) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadOnly);
  uint8_t* data = made.data();
  SharedMemory moved = std::move(made);
  EXPECT_EQ(moved.data(), data);
  EXPECT_TRUE(made.is_empty());
  moved = SharedMemory();
  EXPECT_TRUE(moved.is_empty());
  EXPECT_EQ(moved.size(), 0u);
}

TEST(SharedMemoryTest, KnowsWhichPagesALookWouldMake) {
  constexpr uint64_t kPage = 4096;
  constexpr uint64_t kLarge = 64 << 20;  // more than the kernel is asked about at once
  SharedMemory made = make_memory(kLarge, SharedMemory::Access::ReadWrite);
  SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
  EXPECT_EQ(adopted.missing_bytes(0, kLarge), kLarge);
  for (const uint64_t page : {0, 1, 5, 4095, 4096, 9000}) made.data()[page * kPage] = 1;
  EXPECT_EQ(adopted.missing_bytes(0, kLarge), kLarge - 6 * kPage);
  EXPECT_EQ(adopted.missing_bytes(100, 2 * kPage - 100), 0u);
  EXPECT_EQ(adopted.missing_bytes(2 * kPage - 1, 2), kPage) << "a byte of a page is the page";
  EXPECT_EQ(adopted.missing_bytes(kLarge - 10, 100), kPage);
  EXPECT_EQ(adopted.missing_bytes(kLarge, 100), 0u);
  EXPECT_EQ(adopted.missing_bytes(0, 0), 0u);
  EXPECT_EQ(made.memory_bytes(), 6 * kPage) << "asking makes none";
  // A hole is made again.
  ASSERT_EQ(::fallocate(made.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage), 0);
  EXPECT_EQ(adopted.missing_bytes(0, 2 * kPage), kPage);
}

TEST(SharedMemoryTest, InputsTellAnotherUserWhichPagesThereAre) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  for (const auto holes : {SharedMemory::Holes::Possible, SharedMemory::Holes::Never}) {
    SharedMemory made = std::move(SharedMemory::create_input("test", kBytes, holes)).value();
    made.data()[0] = 1;
    // Made by the other user: who looks is not its owner.
    ASSERT_EQ(::fchown(made.fd(), 65533, 65533), 0);
    SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);  // of this thread alone
    EXPECT_EQ(adopted.missing_bytes(0, kBytes), kBytes - 4096);
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
  }
}

TEST(SharedMemoryTest, WhoeverHasMemoryWithoutHolesKnowsIt) {
  for (const auto holes : {SharedMemory::Holes::Possible, SharedMemory::Holes::Never}) {
    SharedMemory made = std::move(SharedMemory::create_input("test", kBytes, holes)).value();
    SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadOnly);
    made.data()[0] = 1;
    const bool can_make_holes = made.give_back(0, 4096).is_ok();
    EXPECT_EQ(made.keeps_pages(), !can_make_holes);
    EXPECT_EQ(adopted.keeps_pages(), !can_make_holes);
    EXPECT_TRUE(can_make_holes || holes == SharedMemory::Holes::Never);
    ASSERT_TRUE(made.reserve(0, kBytes)) << "pages can be made, with the seal as well";
    std::fill_n(made.data(), kBytes, uint8_t{1});
    EXPECT_EQ(adopted.missing_bytes(0, kBytes), 0u);
  }
}

TEST(SharedMemoryTest, WhoWritesToAdoptedMemoryForbidsHoles) {
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadWrite);
  SharedMemory adopted = adopt_memory(made, SharedMemory::Access::ReadWrite);
  if (!adopted.keeps_pages()) GTEST_SKIP() << "this kernel has no seal for it";
  adopted.data()[0] = 1;
  EXPECT_NE(::madvise(made.data(), 4096, MADV_REMOVE), 0);
  EXPECT_FALSE(made.give_back(0, 4096).is_ok());
  EXPECT_EQ(made.data()[0], 1);
  made.data()[1] = 2;
  EXPECT_EQ(adopted.data()[1], 2) << "both may still write";
}

// The kernel calls all pages present, to who may not write the file.
TEST(SharedMemoryTest, WhereTheKernelDoesNotTellAllPagesAreMissing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  SharedMemory made = make_memory(kBytes, SharedMemory::Access::ReadWrite);
  made.data()[0] = 1;
  const auto missing = [&] {
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);  // of this thread alone
    const uint64_t bytes = made.missing_bytes(0, kBytes);
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    return bytes;
  };
  EXPECT_EQ(missing(), kBytes - 4096);
  ASSERT_EQ(::fchmod(made.fd(), 0755), 0);
  EXPECT_EQ(missing(), kBytes);
}

}  // namespace
}  // namespace braid
