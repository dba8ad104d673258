#include "hostlocal/directory/index_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/hex.h"
#include "base/net/u128.h"

namespace croft::store::hostlocal {
namespace {

using net::U128;

// Addresses as numbers in one space: IPv4 ones as their IPv4-mapped form, so that a /64 or a /0 costs nothing.

constexpr U128 kMapped = U128{0xffff} << 32;

U128 number_of(const net::Address& address) { return address.is_v4() ? kMapped | address.value() : address.value(); }

static_assert(std::endian::native == std::endian::little, "the index is written in memory order; see kMagic");

constexpr std::array<char, 8> kMagic = {'c', 'r', 'o', 'f', 't', 'i', 'd', 'x'};
/// Counts up with any change of the layout, of content_hash, or of where TakenTable and HolderTable put things.
constexpr std::uint32_t kFormat = 1;
constexpr std::uint64_t kTablesOffset = 4096;
/// Keeps the sizes computed from a damaged header within reason; a place in a table of so many slots has 31 bits.
constexpr std::uint32_t kSlotsMax = 1U << 25;

/// The beginning of the file.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t taken_slots = 0;
  std::uint32_t used_taken_slots = 0;
  std::uint32_t holder_cells = 0;
  std::uint64_t holders = 0;
  std::uint64_t reservations = 0;
  std::array<std::uint8_t, 16> boot{};
  std::int64_t read_at_since_boot_ns = 0;  ///< when all files were read
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Header) == 104 && std::is_trivially_copyable_v<Header>);

/// The taken ones among 64 neighbouring numbers. All zero: an unused slot.
struct Slot {
  std::uint64_t key_hi = 0;  ///< the numbers' common upper 122 bits, with kUsed
  std::uint64_t key_lo = 0;
  std::uint64_t taken = 0;  ///< one bit a number

  static constexpr std::uint64_t kUsed = std::uint64_t{1} << 63;
  [[nodiscard]] bool is_used() const { return (key_hi & kUsed) != 0; }
};
static_assert(sizeof(Slot) == 24 && std::is_trivially_copyable_v<Slot>);

std::uint64_t checksum_of(Header header) {
  header.checksum = 0;
  return hash_of_name({reinterpret_cast<const char*>(&header), sizeof header});
}

std::uint64_t holders_offset(const Header& header) {
  return kTablesOffset + std::uint64_t{header.taken_slots} * sizeof(Slot);
}
std::uint64_t file_bytes(const Header& header) {
  return holders_offset(header) + std::uint64_t{header.holder_cells} * sizeof(std::uint64_t);
}

bool is_sound(const Header& header) {
  return header.magic == kMagic && header.format == kFormat && header.checksum == checksum_of(header) &&
         std::has_single_bit(header.taken_slots) && header.taken_slots <= kSlotsMax &&
         std::has_single_bit(header.holder_cells) && header.holder_cells <= kSlotsMax;
}

bool counts_for(const Header& header, const os::DirectoryStamp& stamp) {
  const os::DirectoryStamp own{{header.device, header.inode}, header.modified_ns, header.changed_ns};
  return own == stamp && stamp.modified_ns != stamp.changed_ns;
}

bool counts_now(const Header& header, const Instant& now) {
  const std::chrono::nanoseconds age = now.since_boot - std::chrono::nanoseconds(header.read_at_since_boot_ns);
  return now.boot != BootId() && header.boot == now.boot.bytes && age.count() >= 0 && age <= kIndexAgeMax;
}

/// The bytes of an index, zeros at first: those of its file are read page by page when asked for. Changes stay in
/// memory until they are written.
class Pages {
 public:
  Pages(std::optional<os::RandomAccessFile> file, std::uint64_t bytes)
      : file_(std::move(file)), bytes_(bytes), pages_((bytes + kPageBytes - 1) / kPageBytes) {}

  void read(std::uint64_t offset, void* to, std::size_t count) {
    auto* out = static_cast<std::byte*>(to);
    for_each_piece(offset, count, [&](Page& page, std::size_t at, std::size_t size) {
      std::memcpy(out, page.data.data() + at, size);
      out += size;
    });
  }
  void write(std::uint64_t offset, const void* from, std::size_t count) {
    const auto* in = static_cast<const std::byte*>(from);
    for_each_piece(offset, count, [&](Page& page, std::size_t at, std::size_t size) {
      std::memcpy(page.data.data() + at, in, size);
      page.changed_from = std::min(page.changed_from, at);
      page.changed_to = std::max(page.changed_to, at + size);
      in += size;
    });
  }
  [[nodiscard]] Result<void> write_changes(const os::RandomAccessFile& to) const {
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      const Page* page = pages_[i].get();
      if (page == nullptr || page->changed_from >= page->changed_to) continue;
      TRY_VOID(to.write_at(i * kPageBytes + page->changed_from, page->data.data() + page->changed_from,
                           page->changed_to - page->changed_from));
    }
    return {};
  }
  [[nodiscard]] const std::optional<os::RandomAccessFile>& file() const { return file_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  struct Page {
    std::size_t changed_from = kPageBytes;
    std::size_t changed_to = 0;
    std::array<std::byte, kPageBytes> data{};
  };

  template <class F>
  void for_each_piece(std::uint64_t offset, std::size_t count, F&& f) {
    while (count > 0) {
      const auto at = static_cast<std::size_t>(offset % kPageBytes);
      const std::size_t size = std::min(count, kPageBytes - at);
      f(page(offset / kPageBytes), at, size);
      offset += size;
      count -= size;
    }
  }
  Page& page(std::uint64_t number) {
    std::unique_ptr<Page>& there = pages_[number];
    if (there) return *there;
    there = std::make_unique<Page>();
    if (!file_) return *there;
    const std::uint64_t offset = number * kPageBytes;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPageBytes, bytes_ - offset));
    const auto read = file_->read_at(offset, there->data.data(), size);
    if (read && *read) return *there;
    failed_ = true;
    there->data.fill(std::byte{0});
    return *there;
  }

  std::optional<os::RandomAccessFile> file_;
  std::uint64_t bytes_;
  std::vector<std::unique_ptr<Page>> pages_;
  bool failed_ = false;
};

/// Records of one type, one behind the other in the pages. `size`: a power of two.
template <class T>
struct PagedArray {
  Pages& pages;
  std::uint64_t offset;
  std::uint32_t size;

  [[nodiscard]] T get(std::uint32_t index) const {
    T value;
    pages.read(offset + std::uint64_t{index} * sizeof(T), &value, sizeof value);
    return value;
  }
  void set(std::uint32_t index, const T& value) {
    pages.write(offset + std::uint64_t{index} * sizeof(T), &value, sizeof value);
  }
  /// The first record from `home` on, round through all of them, that `f` answers true for.
  template <class F>
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t home, F&& f) const {
    for (std::uint32_t probes = 0; probes < size; ++probes) {
      const std::uint32_t index = (home + probes) & (size - 1);
      if (f(get(index))) return index;
    }
    return std::nullopt;
  }
};

constexpr std::uint32_t kNeighbours = 64;

U128 neighbourhood_of(U128 number) { return number >> 6; }

/// Which numbers are taken: a hash table with open addressing of neighbourhoods. One that was used once keeps its slot,
/// also when nothing of it is taken any more. Damaged slots give wrong answers, never an endless loop or an access
/// outside. A number's place is where its bit is, and stays.
class TakenTable {
 public:
  /// Counts the slots in use in `used`.
  TakenTable(PagedArray<Slot> slots, std::uint32_t& used) : slots_(slots), used_(used) {}

  /// Nothing for a number whose neighbourhood has no slot.
  [[nodiscard]] std::optional<std::uint32_t> place_of(U128 number) const {
    const auto index = index_for(number);
    if (!index || !slots_.get(*index).is_used()) return std::nullopt;
    return *index * kNeighbours + bit_number(number);
  }
  /// The inverse; nothing for a place out of range, or in an unused slot.
  [[nodiscard]] std::optional<U128> number_at(std::uint32_t place) const {
    if (place / kNeighbours >= slots_.size) return std::nullopt;
    const Slot slot = slots_.get(place / kNeighbours);
    if (!slot.is_used()) return std::nullopt;
    return (U128{slot.key_hi & ~Slot::kUsed, slot.key_lo} << 6) + place % kNeighbours;
  }

  /// False when it was taken, or there is no room.
  bool take(U128 number) {
    const auto index = index_for(number);
    if (!index) return false;
    Slot slot = slots_.get(*index);
    const bool fresh = !slot.is_used();
    if (fresh) slot = empty_slot(number);
    if ((slot.taken & bit_of(number)) != 0) return false;
    slot.taken |= bit_of(number);
    slots_.set(*index, slot);
    if (fresh) ++used_;
    return true;
  }
  /// False when it was free.
  bool give_back(U128 number) {
    const auto index = index_for(number);
    if (!index) return false;
    Slot slot = slots_.get(*index);
    if ((slot.taken & bit_of(number)) == 0) return false;
    slot.taken &= ~bit_of(number);
    slots_.set(*index, slot);
    return true;
  }

  /// The lowest free number from `first` to `last`, both included. One look for each 64 taken numbers passed over.
  [[nodiscard]] std::optional<U128> next_free(U128 first, U128 last) const {
    while (first <= last) {
      const auto index = index_for(first);
      if (!index) return first;
      const std::uint64_t free = ~slots_.get(*index).taken & (~std::uint64_t{0} << bit_number(first));
      const U128 neighbourhood = first & ~U128{kNeighbours - 1};
      if (free != 0) {
        const U128 found = neighbourhood + static_cast<std::uint64_t>(std::countr_zero(free));
        return found <= last ? std::optional(found) : std::nullopt;
      }
      const U128 next = neighbourhood + kNeighbours;
      if (next <= neighbourhood) return std::nullopt;  // the last neighbourhood of all
      first = next;
    }
    return std::nullopt;
  }

 private:
  static std::uint32_t bit_number(U128 number) { return static_cast<std::uint32_t>(number.lo & (kNeighbours - 1)); }
  static std::uint64_t bit_of(U128 number) { return std::uint64_t{1} << bit_number(number); }
  static Slot empty_slot(U128 number) {
    const U128 key = neighbourhood_of(number);
    return {key.hi | Slot::kUsed, key.lo, 0};
  }
  /// The slot of a number's neighbourhood, else the unused one where it would be.
  [[nodiscard]] std::optional<std::uint32_t> index_for(U128 number) const {
    const Slot wanted = empty_slot(number);
    return slots_.find(home_of(number), [&](const Slot& slot) {
      return !slot.is_used() || (slot.key_hi == wanted.key_hi && slot.key_lo == wanted.key_lo);
    });
  }
  static std::uint32_t home_of(U128 number) {
    const U128 key = neighbourhood_of(number);
    return static_cast<std::uint32_t>(mix_bits(key.lo ^ (key.hi * 0x9e3779b97f4a7c15U)));
  }

  PagedArray<Slot> slots_;
  std::uint32_t& used_;
};

/// Which places hold reservations whose content has a given hash: a hash table with open addressing. A cell of 0 is
/// unused. Two contents may share a hash, so what is found has to be looked at. Damaged cells give wrong answers, never
/// an endless loop.
class HolderTable {
 public:
  explicit HolderTable(PagedArray<std::uint64_t> cells) : cells_(cells) {}

  [[nodiscard]] std::vector<std::uint32_t> places_of(std::uint32_t hash) const {
    std::vector<std::uint32_t> places;
    static_cast<void>(cells_.find(hash, [&](std::uint64_t cell) {
      if (cell != 0 && hash_of(cell) == hash) places.push_back(static_cast<std::uint32_t>(cell) - 1);
      return cell == 0;
    }));
    return places;
  }
  /// False when there is no room.
  bool add(std::uint32_t hash, std::uint32_t place) {
    const auto index = cells_.find(hash, [](std::uint64_t cell) { return cell == 0; });
    if (index) cells_.set(*index, cell_of(hash, place));
    return index.has_value();
  }
  /// False when it is not there. Entries that probing brought behind it move up, so that no mark has to stay.
  bool remove(std::uint32_t hash, std::uint32_t place) {
    const std::uint32_t mask = cells_.size - 1;
    const std::uint64_t wanted = cell_of(hash, place);
    const auto found = cells_.find(hash, [&](std::uint64_t cell) { return cell == 0 || cell == wanted; });
    if (!found || cells_.get(*found) == 0) return false;
    std::uint32_t hole = *found;
    std::uint32_t index = hole;
    for (std::uint32_t probes = 0; probes <= mask; ++probes) {
      index = (index + 1) & mask;
      const std::uint64_t cell = cells_.get(index);
      if (cell == 0) break;
      const std::uint32_t home = hash_of(cell) & mask;
      // It may move into the hole unless its home lies behind the hole on the way to it.
      if (((index - home) & mask) < ((index - hole) & mask)) continue;
      cells_.set(hole, cell);
      hole = index;
    }
    cells_.set(hole, 0);
    return true;
  }

 private:
  static std::uint32_t hash_of(std::uint64_t cell) { return static_cast<std::uint32_t>(cell >> 32); }
  static std::uint64_t cell_of(std::uint32_t hash, std::uint32_t place) {
    return (std::uint64_t{hash} << 32) | (place + 1);
  }

  PagedArray<std::uint64_t> cells_;
};

/// Twice what is needed, for room.
std::uint32_t size_for(std::size_t count) {
  return static_cast<std::uint32_t>(std::bit_ceil(std::max<std::size_t>(64, (count + 1) * 2)));
}

Header header_for(const std::vector<net::Address>& taken) {
  std::vector<U128> neighbourhoods;
  neighbourhoods.reserve(taken.size());
  for (const net::Address& address : taken) neighbourhoods.push_back(neighbourhood_of(number_of(address)));
  std::sort(neighbourhoods.begin(), neighbourhoods.end());
  const auto end = std::unique(neighbourhoods.begin(), neighbourhoods.end());
  Header header;
  header.taken_slots = size_for(static_cast<std::size_t>(end - neighbourhoods.begin()));
  header.holder_cells = size_for(taken.size());
  return header;
}

std::string index_directory(const std::string& data_dir) { return data_dir + "/.croft"; }

[[nodiscard]] Result<os::RandomAccessFile> create_index_file(const std::string& data_dir, const std::string& path) {
  auto file = os::RandomAccessFile::create(path);
  if (file || file.error().code != ErrorCode::not_found) return file;
  TRY_VOID(os::make_private_directory(index_directory(data_dir)));
  return os::RandomAccessFile::create(path);
}

}  // namespace

std::uint32_t content_hash(std::string_view key) { return static_cast<std::uint32_t>(mix_bits(hash_of_name(key))); }

std::string index_path(const std::string& data_dir, const std::string& network) {
  return index_directory(data_dir) + "/" + network + ".index";
}

struct View::Tables {
  Tables(std::optional<os::RandomAccessFile> file, const Header& from)
      : header(from),
        pages(std::move(file), file_bytes(header)),
        taken({pages, kTablesOffset, header.taken_slots}, header.used_taken_slots),
        holders({pages, holders_offset(header), header.holder_cells}) {}
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  /// The changes, and then that they count.
  [[nodiscard]] Result<void> write_to(const os::RandomAccessFile& file, const os::DirectoryStamp& stamp) {
    TRY_VOID(pages.write_changes(file));
    header.device = stamp.id.device;
    header.inode = stamp.id.inode;
    header.modified_ns = stamp.modified_ns;
    header.changed_ns = stamp.changed_ns;
    header.checksum = checksum_of(header);
    return file.write_at(0, &header, sizeof header);
  }

  Header header;
  Pages pages;
  TakenTable taken;
  HolderTable holders;
  bool contradicts_itself = false;
};

View::View(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}

View::View(const std::vector<net::Address>& taken)
    : tables_(std::make_unique<Tables>(std::nullopt, header_for(taken))) {
  for (const net::Address& address : taken) {
    if (tables_->taken.take(number_of(address))) ++tables_->header.reservations;
  }
}

View::~View() = default;

std::unique_ptr<View> View::open(const std::string& path, const os::DirectoryStamp& stamp, const Clock& clock) {
  auto file = os::RandomAccessFile::open(path);
  if (!file || !*file) return nullptr;
  Header header;
  const auto read = (*file)->read_at(0, &header, sizeof header);
  if (!read || !*read || !is_sound(header) || !counts_for(header, stamp)) return nullptr;
  if (!counts_now(header, clock.now())) return nullptr;
  const auto size = (*file)->size();
  if (!size || *size != file_bytes(header)) return nullptr;
  return std::unique_ptr<View>(new View(std::make_unique<Tables>(*std::move(file), header)));
}

void View::see_content(const net::Address& address, std::uint32_t hash) {
  const auto place = tables_->taken.place_of(number_of(address));
  if (place && tables_->holders.add(hash, *place)) {
    ++tables_->header.holders;
  } else {
    tables_->contradicts_itself = true;
  }
}

void View::see_nothing(const net::Address& address) {
  if (tables_->taken.give_back(number_of(address))) --tables_->header.reservations;
}

bool View::is_first_hand() const { return !tables_->pages.file(); }

std::uint64_t View::reservation_count() const { return tables_->header.reservations; }

std::optional<net::Address> View::next_free(const net::Address& first, const net::Address& last) const {
  const auto number = tables_->taken.next_free(number_of(first), number_of(last));
  if (!number) return std::nullopt;
  // By the range's family: an IPv4-mapped number of an IPv6 range stays IPv6.
  return net::Address::from(first.family(), first.is_v4() ? *number - kMapped : *number);
}

std::vector<net::Address> View::with_hash(std::uint32_t hash) {
  std::vector<net::Address> found;
  for (const std::uint32_t place : tables_->holders.places_of(hash)) {
    const auto number = tables_->taken.number_at(place);
    if (number) found.push_back(net::Address::v6(*number).unmapped());
    if (!number) tables_->contradicts_itself = true;
  }
  std::sort(found.begin(), found.end());
  return found;
}

void View::add(const net::Address& address, std::uint32_t hash) {
  if (!tables_->taken.take(number_of(address))) {
    tables_->contradicts_itself = true;
    return;
  }
  ++tables_->header.reservations;
  see_content(address, hash);
}

void View::remove(const net::Address& address, std::uint32_t hash) {
  const U128 number = number_of(address);
  const auto place = tables_->taken.place_of(number);
  if (!place || !tables_->holders.remove(hash, *place) || !tables_->taken.give_back(number)) {
    tables_->contradicts_itself = true;
    return;
  }
  --tables_->header.holders;
  --tables_->header.reservations;
}

bool View::failed() const { return tables_->contradicts_itself || tables_->pages.failed(); }

/// Above three quarters probing gets slow.
bool View::has_room() const {
  const Header& header = tables_->header;
  return header.used_taken_slots < header.taken_slots / 4 * 3 &&
         header.holders < std::uint64_t{header.holder_cells} / 4 * 3;
}

Result<void> View::save(const std::string& data_dir, const std::string& network, const os::DirectoryStamp& stamp,
                        const Instant& now) {
  if (const auto& file = tables_->pages.file()) return tables_->write_to(*file, stamp);
  tables_->header.boot = now.boot.bytes;
  tables_->header.read_at_since_boot_ns = now.since_boot.count();
  const std::string path = index_path(data_dir, network);
  const std::string fresh = path + ".new";
  TRY(const os::RandomAccessFile file, create_index_file(data_dir, fresh));
  TRY_VOID(file.write_at(file_bytes(tables_->header) - 1, "", 1));  // its size; what nothing was written to is zero
  TRY_VOID(tables_->write_to(file, stamp));
  return os::rename_file(fresh, path);
}

}  // namespace croft::store::hostlocal
