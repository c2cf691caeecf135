/* SPDX-License-Identifier: MIT */
/* live_blocks.hpp: the live blocks of another library's allocator, which itself knows neither sizes nor double frees, and
 * the checks of requests and frees that hipmm/plugin.h asks for.
 *
 * A block costs one atomic operation when it is allocated and one when it is freed, so that the figures are the other
 * library's: its record is a word in a table with a word for each HIPMM_ALIGNMENT bytes of all addresses. The table is
 * address space, and the system provides memory only for the pages that are written. */
#ifndef HIPMM_TESTS_GPU_ALLOCATORS_LIVE_BLOCKS_HPP
#define HIPMM_TESTS_GPU_ALLOCATORS_LIVE_BLOCKS_HPP

#include <hipmm/plugin.h>

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

/* Thrown by a constructor that has reported why. */
struct failure {
  hipmm_status status;
};

/* A size in the lower bits of a word, a number of the plugin's own in the upper bits. Thread-safe. */
class live_blocks
{
public:
  static constexpr std::size_t most_bytes = (std::size_t{1} << 48) - 1;

  explicit live_blocks(const hipmm_services *services) : services_{services}
  {
    void *table =
        mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
      throw failure{
          services->fail(services, HIPMM_E_OUT_OF_MEMORY, nullptr, "no address space for the table of live blocks")};
    words_ = static_cast<std::uint64_t *>(table);
  }
  live_blocks(const live_blocks &) = delete;
  ~live_blocks()
  {
    munmap(words_, table_bytes);
  }

  /* Refuses what no allocator here can serve. */
  hipmm_status check(std::size_t bytes, std::size_t alignment) const
  {
    if (alignment > HIPMM_ALIGNMENT)
      return services_->refuse(services_, HIPMM_E_ARGUMENT, "cannot align to {0:bytes}, only to {1:bytes}", alignment,
                               HIPMM_ALIGNMENT, 0);
    if (bytes > most_bytes)
      return services_->refuse(services_, HIPMM_E_OUT_OF_MEMORY, "cannot allocate {0:bytes}: no memory is that large",
                               bytes, 0, 0);
    return HIPMM_OK;
  }

  void add(const void *ptr, std::size_t bytes, std::uint16_t number)
  {
    std::uint8_t *part = &parts_[reinterpret_cast<std::uintptr_t>(ptr) / part_bytes];
    if (!__atomic_load_n(part, __ATOMIC_RELAXED)) __atomic_store_n(part, 1, __ATOMIC_RELAXED);
    __atomic_store_n(word_of(ptr), std::uint64_t{number} << 48 | bytes, __ATOMIC_RELEASE);
  }

  /* Removes the block for the caller alone. `bytes` is 0 if it is not known. Reports a failure, which changes nothing. */
  hipmm_status remove(const void *ptr, std::size_t bytes, std::size_t *bytes_out, std::uint16_t *number_out)
  {
    std::uint64_t *word = word_of(ptr), value = word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
    const std::size_t size = value & most_bytes;
    if (!size) return refuse_pointer(ptr);
    if (bytes && bytes != size)
      return services_->refuse(services_, HIPMM_E_SIZE,
                               "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                               reinterpret_cast<std::uintptr_t>(ptr), size, bytes);
    if (!__atomic_compare_exchange_n(word, &value, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return refuse_pointer(ptr);
    *bytes_out = size;
    *number_out = static_cast<std::uint16_t>(value >> 48);
    return HIPMM_OK;
  }

  hipmm_status find(const void *ptr, hipmm_block *block_out) const
  {
    const std::uint64_t *word = word_of(ptr), value = word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
    if (!value) return refuse_pointer(ptr);
    *block_out = {const_cast<void *>(ptr), static_cast<std::size_t>(value & most_bytes)};
    return HIPMM_OK;
  }

  /* Calls `visitor` with the address and the size of each block. No other thread uses the table. */
  template <typename Visitor> void visit(Visitor visitor) const
  {
    constexpr std::size_t n_words = part_bytes / HIPMM_ALIGNMENT;
    for (std::size_t part = 0; part < addresses / part_bytes; part++)
      for (std::size_t i = part * n_words; parts_[part] && i < (part + 1) * n_words; i++)
        if (words_[i])
          visitor(reinterpret_cast<void *>(i * HIPMM_ALIGNMENT), static_cast<std::size_t>(words_[i] & most_bytes));
  }

private:
  static constexpr std::size_t addresses = std::size_t{1} << 47; /* of a process */
  static constexpr std::size_t part_bytes = std::size_t{1} << 30;
  static constexpr std::size_t table_bytes = addresses / HIPMM_ALIGNMENT * sizeof(std::uint64_t);

  /* NULL: no block can start there. */
  std::uint64_t *word_of(const void *ptr) const
  {
    const auto address = reinterpret_cast<std::uintptr_t>(ptr);
    return address < addresses && address % HIPMM_ALIGNMENT == 0 ? &words_[address / HIPMM_ALIGNMENT] : nullptr;
  }

  hipmm_status refuse_pointer(const void *ptr) const
  {
    return services_->refuse(services_, HIPMM_E_POINTER,
                             "{0:hex} is not allocated here: it is foreign, or was freed before",
                             reinterpret_cast<std::uintptr_t>(ptr), 0, 0);
  }

  const hipmm_services *services_;
  std::uint64_t *words_;
  std::uint8_t parts_[addresses / part_bytes] = {}; /* 1: a block has started in this part of the addresses */
};

#endif
