package permit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// The names below show where a host is, without a DNS lookup. All other names count as
// public. Only a lookup would show where such a name leads. At that point the sandbox and
// the network decide, not the floor.

// metadataNames are services that give out the credentials of a cloud machine.
var metadataNames = []string{
	"metadata", "metadata.goog", "metadata.google.internal", "metadata.azure.internal", "metadata.internal", "metadata.tencentyun.com",
	"metadata.packet.net", "metadata.platformequinix.com", "api.metadata.cloud.ibm.com", "instance-data", "instance-data.ec2.internal", "rancher-metadata",
}

// loopbackNames are names of this machine. A name below one of them also means this
// machine.
var loopbackNames = []string{
	"localhost", "localhost4", "localhost6", "localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback", "loopback",
	"host.docker.internal", "host.containers.internal",
	// Public names that resolve to the loopback address.
	"localtest.me", "lvh.me", "vcap.me", "fuf.me", "lacolhost.com", "localho.st", "local.gd", "localhost.direct", "lndo.site", "ddev.site", "traefik.me",
}

// localSuffixes are suffixes of names that exist only in private networks.
var localSuffixes = []string{
	"local", "localdomain", "internal", "intranet", "private", "lan", "home", "corp", "home.arpa", "svc", "kubernetes.default", "consul", "docker", "localnet", "workgroup", "domain", "router",
	"test", "invalid", "onion", "arpa", "ts.net", "fritz.box",
}

// wildcardNames are services that resolve any name below them. The result is the address
// in the name, or an address that changes.
var wildcardNames = []string{"nip.io", "sslip.io", "xip.io", "xip.name", "backname.io", "plex.direct", "1u.ms", "rbndr.us", "rebind.network"}

// judgeName returns the reach of a host name. The name must be in lower case, have no
// trailing dot, and not be an address.
func judgeName(name string) reach {
	unclear := func(why string) reach { return reach{zone: ZoneMachine, host: name, why: shown(name) + " " + why} }
	held := func(protection, why string) reach {
		return reach{zone: ZoneMachine, protection: protection, host: name, why: shown(name) + " " + why}
	}
	if fault := nameFault(name); fault != "" {
		return unclear(fault).worse(judgeCarried(name, false))
	}
	switch {
	case slices.Contains(metadataNames, name):
		return held(netMetadata, "is the metadata service of a cloud")
	case isBelow(name, loopbackNames):
		return held(netLoopback, "means this machine").worse(judgeCarried(name, true))
	case isBelow(name, localSuffixes):
		return held(netPrivate, "is a name of a private network").worse(judgeCarried(name, false))
	case !strings.Contains(name, "."):
		return held(netPrivate, "is a name without a domain, which exists only in a private network or a local configuration")
	case isBelow(name, wildcardNames) && !slices.Contains(wildcardNames, name):
		return unclear("resolves to the IP address that is part of the name").worse(judgeCarried(name, true))
	default:
		public := reach{zone: ZoneNetwork, host: name, why: shown(name) + " is a public name"}
		return public.worse(judgeCarried(name, false))
	}
}

// isBelow reports whether a name is one of the domains, or is below one of them.
func isBelow(name string, domains []string) bool {
	for _, d := range domains {
		if rest, ok := strings.CutSuffix(name, d); ok && (rest == "" || strings.HasSuffix(rest, ".")) {
			return true
		}
	}
	return false
}

// nameFault returns why no resolver would accept a name, or an empty text if one would.
func nameFault(name string) string {
	if name == "" {
		return "is empty"
	}
	if len(name) > 253 {
		return "is too long for a host name"
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return "is not a host name: each part between dots must have 1 to 63 characters"
		}
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		case r >= 0x80 && isPlainLetter(r):
		default:
			return fmt.Sprintf("is not a host name: it contains %q", r)
		}
	}
	last := labels[len(labels)-1]
	if len(labels) > 1 && !strings.HasPrefix(last, "xn--") && strings.ContainsAny(last, "0123456789_-") {
		return "is neither a host name nor an IP address: its last part contains a digit, an underscore or a hyphen"
	}
	return ""
}

// isPlainLetter reports whether a non-ASCII character can be part of a name unchanged.
// Raised, enclosed and joined letters cannot, because programs map them in different
// ways.
func isPlainLetter(r rune) bool {
	if unicode.In(r, unicode.Lm, foldedElsewhere) {
		return false
	}
	return unicode.IsLetter(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)
}

// judgeCarried searches a name for an address, as in 10.0.0.1.nip.io and
// app-10-0-0-1.sslip.io. If wildcard is set, it also finds addresses in other forms, as in
// 0a000001.nip.io and --1.sslip.io. Only an address that is not public makes the result
// more severe.
func judgeCarried(name string, wildcard bool) reach {
	var r reach
	note := func(addr netip.Addr) {
		if inner := judgeAddr(addr); inner.zone > ZoneNetwork {
			inner.host, inner.why = name, fmt.Sprintf("%s contains an address: %s", shown(name), inner.why)
			r = r.worse(inner)
		}
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return ('a' > c || c > 'z') && ('0' > c || c > '9') })
	for i, word := range words {
		if n, ok := parsePart("0x"+word, false); wildcard && ok && len(word) == 8 {
			note(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}))
		}
		if i+4 <= len(words) {
			if addr, fits, ok := joinV4(words[i:i+4], true); ok && fits {
				note(addr)
			}
		}
	}
	if !wildcard {
		return r
	}
	for label := range strings.SplitSeq(name, ".") {
		if addr, err := netip.ParseAddr(strings.ReplaceAll(label, "-", ":")); err == nil {
			note(addr)
		}
	}
	return r
}
