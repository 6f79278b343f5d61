// What store.cpp and store_query.cpp share: the connections. Not for others.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/serve/store.h"
#include "runtime/serve/store_sqlite.h"

namespace reflex::serve {

struct Store::Inside {
  std::string path;
  std::mutex writing;  // held over each transaction of `writer`
  std::unique_ptr<Connection> writer;
  std::mutex lending;
  std::vector<std::unique_ptr<Connection>> idle_readers;

  /// A reader of our own for one question; goes back when it ends.
  class Reader {
   public:
    Reader(Inside& inside, std::unique_ptr<Connection> connection)
        : inside_(&inside), connection_(std::move(connection)) {}
    Reader(Reader&& other) noexcept = default;
    Reader& operator=(Reader&&) = delete;
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader();
    Connection& operator*() { return *connection_; }
    Connection* operator->() { return connection_.get(); }

   private:
    Inside* inside_;
    std::unique_ptr<Connection> connection_;
  };
  Result<Reader> reader();
};

}  // namespace reflex::serve
