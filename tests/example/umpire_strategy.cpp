// SPDX-License-Identifier: MIT
// umpire_strategy.cpp: hipmm as a strategy of Umpire: its allocator's memory comes from a graph, its copies and counters are
// Umpire's.
//
// Run: with Umpire 2024.07 (5bf5bc18) and its Platform::host on hipmm's software device; by tests/doors/recipes.sh with a
// stand-in of the classes that it names. Not run: on a GPU.
//
//     c++ -std=c++17 umpire_strategy.cpp -o program $(pkg-config --cflags --libs hipmm) -I UMPIRE/include -lumpire -lcamp
//
// The platform tells Umpire how to copy: Platform::cuda or hip for memory of a device, host for `pinned` and `host`.
#include <umpire/ResourceManager.hpp>
#include <umpire/Umpire.hpp>
#include <umpire/strategy/AllocationStrategy.hpp>

#include <hipmm/hipmm.h>

#include <cstdio>
#include <stdexcept>
#include <string>

// What the strategy allocates from. Umpire writes the arguments of makeAllocator() to its log, by the function to_string() that
// it finds for each type.
struct hipmm_source {
  hipmm_resource *resource;
  umpire::Platform platform;

  friend std::string to_string(const hipmm_source &source)
  {
    return hipmm_resource_name(source.resource);
  }
};

class hipmm_strategy : public umpire::strategy::AllocationStrategy
{
public:
  hipmm_strategy(const std::string &name, int id, const hipmm_source &source)
      : AllocationStrategy(name, id, nullptr, "hipmm"), m_resource(source.resource), m_platform(source.platform)
  {
    hipmm_resource_retain(m_resource);
  }

  ~hipmm_strategy() override
  {
    hipmm_resource_release(m_resource);
  }

  void release() override
  {
    check(hipmm_resource_trim(m_resource, 0));
  }
  umpire::Platform getPlatform() noexcept override
  {
    return m_platform;
  }
  umpire::MemoryResourceTraits getTraits() const noexcept override
  {
    return {};
  }

private:
  void *allocate(std::size_t bytes) override
  {
    void *ptr = nullptr;
    check(hipmm_allocate(m_resource, bytes, nullptr, &ptr));
    return ptr;
  }

  void deallocate(void *ptr, std::size_t bytes) override
  {
    check(hipmm_deallocate(m_resource, ptr, bytes, nullptr));
  }

  static void check(hipmm_status status)
  {
    if (status != HIPMM_OK) throw std::runtime_error(hipmm_last_error_message());
  }

  hipmm_resource *m_resource;
  umpire::Platform m_platform;
};

int main()
{
  hipmm_resource *resource = nullptr;
  if (hipmm_init() != HIPMM_OK || hipmm_resource_get_current(&resource) != HIPMM_OK) {
    std::fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  auto &manager = umpire::ResourceManager::getInstance();
  umpire::Allocator allocator =
      manager.makeAllocator<hipmm_strategy>("hipmm", hipmm_source{resource, umpire::Platform::host});
  void *ptr = allocator.allocate(40000);
  hipmm_statistics counters;
  if (hipmm_statistics_get(resource, &counters) != HIPMM_OK) return 1;
  std::printf("Umpire has %lld bytes of hipmm, and counts %zu\n", static_cast<long long>(counters.current_bytes),
              allocator.getCurrentSize());
  allocator.deallocate(ptr);
  try {
    allocator.allocate(std::size_t{1} << 45);
  } catch (const std::exception &error) {
    std::printf("too large: %s\n", error.what());
  }
  allocator.release();
  if (hipmm_statistics_get(resource, &counters) != HIPMM_OK) return 1;
  std::printf("%lld bytes are left\n", static_cast<long long>(counters.current_bytes));
  hipmm_resource_release(
      resource); // Umpire's manager keeps the strategy, and with it the stack, until the program ends
  return hipmm_finalize() != HIPMM_OK;
}
