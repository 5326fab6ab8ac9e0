package permit

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// reach describes the network target of a URL or a host.
type reach struct {
	// zone is ZoneNetwork for a public address. It is ZoneMachine for this machine, for
	// private networks and for unknown addresses. It is ZoneSafe if there is no network
	// access.
	zone Zone
	// protection is the id of the protection that applies, or empty.
	protection string
	// host is the normalized host: addresses as package netip writes them, names in lower
	// case without a trailing dot. It is empty if there is no host.
	host string
	// file is a path, if the text names a file of this machine instead of an address.
	file string
	why  string // reason for the zone, shown to people
}

// severity returns a number for comparing reaches. The metadata protection is the most
// severe, then other protections, then the zone.
func (r reach) severity() int {
	switch {
	case r.protection == netMetadata:
		return 100
	case r.protection != "":
		return 50
	default:
		return int(r.zone)
	}
}

// worse returns the more severe of two reaches, or r if both are equally severe.
func (r reach) worse(other reach) reach {
	if other.severity() > r.severity() {
		return other
	}
	return r
}

// unclear raises a lower zone to ZoneMachine, with a reason.
func (r reach) unclear(why string) reach {
	if r.zone < ZoneMachine {
		r.zone, r.why = ZoneMachine, why
	}
	return r
}

// network is a range of addresses that is not public.
type network struct {
	prefix     netip.Prefix
	protection string
	what       string
}

func block(prefix, protection, what string) network {
	return network{netip.MustParsePrefix(prefix), protection, what}
}

// special are the networks that are not public. The first match decides, so a single
// address comes before the range that contains it. 0.0.0.0/8 is in the list because a
// connection to 0.0.0.0 reaches this machine.
var special = []network{
	block("168.63.129.16/32", netMetadata, "the platform service of a cloud"),
	block("192.0.0.192/32", netMetadata, "the metadata service of a cloud"),
	block("100.100.100.200/32", netMetadata, "the metadata service of a cloud"),
	block("169.254.0.0/16", netMetadata, "a link-local address: clouds have their metadata services there"),
	block("127.0.0.0/8", netLoopback, "this machine"),
	block("0.0.0.0/8", netLoopback, "this machine"),
	block("10.0.0.0/8", netPrivate, "a private network"),
	block("172.16.0.0/12", netPrivate, "a private network"),
	block("192.168.0.0/16", netPrivate, "a private network"),
	block("100.64.0.0/10", netPrivate, "a private network of a provider or a VPN"),
	block("192.0.0.0/24", netPrivate, "reserved"),
	block("192.0.2.0/24", netPrivate, "reserved for documentation"),
	block("192.88.99.0/24", netPrivate, "reserved"),
	block("198.18.0.0/15", netPrivate, "reserved for benchmarks"),
	block("198.51.100.0/24", netPrivate, "reserved for documentation"),
	block("203.0.113.0/24", netPrivate, "reserved for documentation"),
	block("224.0.0.0/4", netPrivate, "multicast"),
	block("240.0.0.0/4", netPrivate, "reserved or broadcast"),

	block("fd00:ec2::/32", netMetadata, "the metadata service of a cloud"),
	block("fd20:ce::254/128", netMetadata, "the metadata service of a cloud"),
	block("fe80::/10", netMetadata, "a link-local address: clouds have their metadata services there"),
	block("::/128", netLoopback, "this machine"),
	block("::1/128", netLoopback, "this machine"),
	block("fc00::/7", netPrivate, "a private network"),
	block("fec0::/10", netPrivate, "a private network"),
	block("64:ff9b:1::/48", netPrivate, "a private translation network"),
	block("2001:db8::/32", netPrivate, "reserved for documentation"),
	block("2001:2::/48", netPrivate, "reserved for benchmarks"),
	block("2001:10::/28", netPrivate, "reserved"),
	block("2001:20::/28", netPrivate, "reserved"),
	block("3fff::/20", netPrivate, "reserved for documentation"),
	block("ff00::/8", netPrivate, "multicast"),
}

var publicV6 = netip.MustParsePrefix("2000::/3")

// judgeAddr returns the reach of an address. If an IPv6 address contains an IPv4 address,
// judgeAddr returns the more severe of the two results.
func judgeAddr(addr netip.Addr) reach {
	addr = addr.WithZone("").Unmap()
	r := reach{zone: ZoneNetwork, host: addr.String(), why: addr.String() + " is a public address"}
	if addr.Is6() {
		for _, v4 := range embeddedIn(addr) {
			if inner := judgeAddr(v4); inner.zone > ZoneNetwork {
				inner.host, inner.why = addr.String(), fmt.Sprintf("%s contains an IPv4 address: %s", addr, inner.why)
				r = r.worse(inner)
			}
		}
		if !publicV6.Contains(addr) && !nat64.Contains(addr) && !translated.Contains(addr) {
			r = r.worse(reach{zone: ZoneMachine, protection: netPrivate, host: addr.String(), why: addr.String() + " is reserved"})
		}
	}
	for _, n := range special {
		if n.prefix.Contains(addr) {
			named := reach{zone: ZoneMachine, protection: n.protection, host: addr.String(), why: addr.String() + " is " + n.what}
			return named.worse(r)
		}
	}
	return r
}

var (
	compatible = netip.MustParsePrefix("::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

// embeddedIn returns the IPv4 addresses that an IPv6 address contains. Translators such
// as NAT64, 6to4 and Teredo connect to these addresses.
func embeddedIn(addr netip.Addr) []netip.Addr {
	b := addr.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case addr == netip.IPv6Unspecified(), addr == netip.IPv6Loopback():
		return nil
	case compatible.Contains(addr), translated.Contains(addr), nat64.Contains(addr):
		return []netip.Addr{at(12)}
	case sixToFour.Contains(addr):
		return append(isatap(b), at(2))
	case teredo.Contains(addr):
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		return []netip.Addr{at(4), netip.AddrFrom4(client)}
	default:
		return isatap(b)
	}
}

// isatap finds the IPv4 address in an interface identifier 0:5efe:a.b.c.d, with or
// without the universal/local bit.
func isatap(b [16]byte) []netip.Addr {
	if b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:16]))}
	}
	return nil
}

// parseV4 parses an IPv4 address as the C library does: one to four parts, each decimal,
// octal (leading 0) or hexadecimal (leading 0x). The last part fills the remaining bytes.
//
// Some programs ignore a leading 0, and some cut off numbers that are too large. So
// parseV4 returns every address that a program could read. sure is false if the C library
// rejects the text, for example because a number is too large. isV4 is true if the last
// part is a number, because no host name ends with a number.
func parseV4(host string) (addrs []netip.Addr, sure, isV4 bool) {
	parts := strings.Split(host, ".")
	if last := parts[len(parts)-1]; !numeric(last) {
		return nil, false, false
	}
	if len(parts) > 4 {
		return nil, false, true
	}
	for _, decimal := range []bool{false, true} {
		addr, fits, ok := joinV4(parts, decimal)
		if !ok {
			continue
		}
		if !decimal {
			sure = fits
		}
		if len(addrs) == 0 || addrs[0] != addr {
			addrs = append(addrs, addr)
		}
	}
	return addrs, sure, true
}

// joinV4 makes an address from its parts. If decimal is set, a leading 0 does not mean
// octal. fits is false if a number is too large. ok is false if a part is not a number.
func joinV4(parts []string, decimal bool) (addr netip.Addr, fits, ok bool) {
	var sum uint32
	fits = true
	for i, part := range parts {
		n, ok := parsePart(part, decimal)
		if !ok {
			return addr, false, false
		}
		most := uint64(0xff)
		if i == len(parts)-1 {
			most = 0xffffffff >> (8 * i)
			sum |= uint32(n & most)
		} else {
			sum |= uint32(n&most) << (24 - 8*i)
		}
		fits = fits && n <= most
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], sum)
	return netip.AddrFrom4(b), fits, true
}

// numeric reports whether a part of an address is a number.
func numeric(part string) bool {
	_, ok := parsePart(part, true)
	return ok
}

// parsePart parses one number of an IPv4 address. A number of more than 32 bits keeps its
// low 32 bits, and gets bit 32 to show that it is too large.
func parsePart(part string, decimal bool) (n uint64, ok bool) {
	base := uint64(10)
	switch {
	case len(part) >= 2 && part[0] == '0' && (part[1] == 'x' || part[1] == 'X'):
		base, part = 16, part[2:]
		if part == "" {
			return 0, true // browsers read 0x as 0
		}
	case len(part) > 1 && part[0] == '0' && !decimal:
		base = 8
	}
	if part == "" {
		return 0, false
	}
	large := uint64(0)
	for _, c := range []byte(part) {
		d, ok := digit(c, base)
		if !ok {
			return 0, false
		}
		n = n*base + d
		if n > 0xffffffff {
			large, n = 1<<32, n&0xffffffff
		}
	}
	return n | large, true
}

func digit(c byte, base uint64) (uint64, bool) {
	var d uint64
	switch {
	case '0' <= c && c <= '9':
		d = uint64(c - '0')
	case 'a' <= c && c <= 'f':
		d = uint64(c-'a') + 10
	case 'A' <= c && c <= 'F':
		d = uint64(c-'A') + 10
	default:
		return 0, false
	}
	return d, d < base
}
