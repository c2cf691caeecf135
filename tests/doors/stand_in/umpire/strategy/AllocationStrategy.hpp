// SPDX-License-Identifier: MIT
// AllocationStrategy.hpp: what tests/example/umpire_strategy.cpp needs of Umpire: our own classes of the same shape.
#ifndef HIPMM_TESTS_DOORS_STAND_IN_UMPIRE_HPP
#define HIPMM_TESTS_DOORS_STAND_IN_UMPIRE_HPP

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace umpire
{

class Allocator;
class ResourceManager;
enum class Platform { undefined, host, cuda, hip };
struct MemoryResourceTraits {
  std::size_t size = 0;
};

namespace strategy
{

class AllocationStrategy
{
  friend class umpire::Allocator;

public:
  AllocationStrategy(const std::string &name, int id, AllocationStrategy *parent,
                     const std::string &strategy_name) noexcept
      : m_name(name), m_strategy_name(strategy_name), m_id(id), m_parent(parent)
  {
  }
  virtual ~AllocationStrategy() = default;
  virtual void release()
  {
  }
  virtual std::size_t getCurrentSize() const noexcept
  {
    return m_current_size;
  }
  virtual Platform getPlatform() noexcept = 0;
  virtual MemoryResourceTraits getTraits() const noexcept
  {
    return m_parent->getTraits();
  }
  std::size_t m_current_size{0};

protected:
  std::string m_name, m_strategy_name;
  int m_id;
  AllocationStrategy *m_parent;

private:
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void deallocate(void *ptr, std::size_t bytes = 0) = 0;
};

} // namespace strategy

class Allocator
{
public:
  explicit Allocator(strategy::AllocationStrategy *strategy) : m_strategy(strategy)
  {
  }

  void *allocate(std::size_t bytes)
  {
    void *ptr = m_strategy->allocate(bytes);
    records()[ptr] = bytes;
    m_strategy->m_current_size += bytes;
    return ptr;
  }

  void deallocate(void *ptr)
  {
    std::size_t bytes = records().at(ptr);
    m_strategy->deallocate(ptr, bytes);
    m_strategy->m_current_size -= bytes;
    records().erase(ptr);
  }

  void release()
  {
    m_strategy->release();
  }
  std::size_t getCurrentSize() const
  {
    return m_strategy->getCurrentSize();
  }

private:
  static std::map<void *, std::size_t> &records()
  {
    static std::map<void *, std::size_t> all;
    return all;
  }
  strategy::AllocationStrategy *m_strategy;
};

class ResourceManager
{
public:
  static ResourceManager &getInstance()
  {
    static ResourceManager manager;
    return manager;
  }

  template <typename Strategy, typename... Arguments>
  Allocator makeAllocator(const std::string &name, Arguments &&...arguments)
  {
    auto &strategy = m_strategies[name];
    static_cast<void>((to_string(arguments) + ... + std::string())); // Umpire logs them
    strategy =
        std::make_unique<Strategy>(name, static_cast<int>(m_strategies.size()), std::forward<Arguments>(arguments)...);
    return Allocator(strategy.get());
  }

private:
  std::map<std::string, std::unique_ptr<strategy::AllocationStrategy>> m_strategies;
};

} // namespace umpire

#endif
