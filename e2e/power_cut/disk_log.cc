#include "disk_log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace croft::e2e {
namespace {

constexpr std::size_t kHeaderBytes = 13;
constexpr std::uint64_t kSectorBytes = 4096;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

DiskLog::Event::Kind kind_of(char letter) {
  switch (letter) {
    case 'W':
      return DiskLog::Event::Kind::write;
    case 'Z':
      return DiskLog::Event::Kind::zero;
    case 'F':
      return DiskLog::Event::Kind::flush;
    default:
      die("the log of the disk is damaged");
  }
}

}  // namespace

DiskLog::DiskLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  bytes_.assign(std::istreambuf_iterator<char>(file), {});
  if (bytes_.empty()) die("cannot read " + path);
  const std::string_view all = bytes_;
  for (std::size_t at = 0; at < all.size();) {
    if (all.size() - at < kHeaderBytes) break;  // copied while it was written
    Event event;
    event.kind = kind_of(all[at]);
    event.offset = little_endian(all.substr(at + 1, 8));
    event.length = static_cast<std::uint32_t>(little_endian(all.substr(at + 9, 4)));
    at += kHeaderBytes;
    if (event.kind == Event::Kind::write) {
      if (all.size() - at < event.length) break;
      event.data = all.substr(at, event.length);
      at += event.length;
    }
    event.end = at;
    events_.push_back(event);
  }
}

std::size_t DiskLog::events_within(std::uint64_t bytes) const {
  const auto after = std::upper_bound(events_.begin(), events_.end(), bytes,
                                      [](std::uint64_t limit, const Event& event) { return limit < event.end; });
  return static_cast<std::size_t>(after - events_.begin());
}

CutImage::CutImage(const DiskLog& log, std::size_t disk_bytes, std::size_t cut, std::mt19937_64& random)
    : bytes_(disk_bytes, '\0') {
  const auto& events = log.events();
  std::size_t durable = cut;
  while (durable > 0 && events[durable - 1].kind != DiskLog::Event::Kind::flush) --durable;
  for (std::size_t i = 0; i < durable; ++i) apply(events[i]);
  // Sometimes nearly all of the cache reached the disk, sometimes nearly nothing.
  const double share = std::uniform_real_distribution<double>(0, 1)(random);
  for (std::size_t i = durable; i < cut; ++i) apply_some_sectors(events[i], share, random);
}

void CutImage::apply(const DiskLog::Event& event) {
  if (event.kind == DiskLog::Event::Kind::write) {
    std::memcpy(bytes_.data() + event.offset, event.data.data(), event.length);
  } else if (event.kind == DiskLog::Event::Kind::zero) {
    std::memset(bytes_.data() + event.offset, 0, event.length);
  }
}

void CutImage::apply_some_sectors(const DiskLog::Event& event, double share, std::mt19937_64& random) {
  std::bernoulli_distribution reaches_disk(share);
  for (std::uint64_t done = 0; done < event.length;) {
    const std::uint64_t offset = event.offset + done;
    const std::uint64_t length = std::min<std::uint64_t>(kSectorBytes - offset % kSectorBytes, event.length - done);
    if (reaches_disk(random)) {
      DiskLog::Event piece = event;
      piece.offset = offset;
      piece.length = static_cast<std::uint32_t>(length);
      if (!event.data.empty()) piece.data = event.data.substr(done, length);
      apply(piece);
      ++sectors_kept_;
    } else {
      ++sectors_lost_;
    }
    done += length;
  }
}

}  // namespace croft::e2e
