package permit

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"
)

// The kinds of addresses.
const (
	isPublic   = "public"
	isSafe     = "safe"
	isUnclear  = "unclear"
	isMetadata = netMetadata
	isPrivate  = netPrivate
	isLoopback = netLoopback
)

func wordOf(r reach) string {
	switch {
	case r.protection != "":
		return r.protection
	case r.zone == ZoneSafe:
		return isSafe
	case r.zone == ZoneNetwork:
		return isPublic
	default:
		return isUnclear
	}
}

// SPEC P-03, P-06
func TestAddressesAreRecognisedInEverySpelling(t *testing.T) {
	t.Parallel()
	for word, hosts := range map[string][]string{
		isLoopback: {
			"127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "0x7f.1", "0x7f.0.0.1", "0X7F.0X0.0X0.0X1", "0x7f000001", "0x000000007f000001", "2130706433",
			"017700000001", "0177.0.0.01", "0177.0x0.0.1", "00000177.1", "127.0.0.1.", "127.65530", "127.0x000001",
			"0", "0.0.0.0", "0x0", "0x", "00", "0.1", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:7F00:0001]",
			"[::127.0.0.1]", "[::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:1::1234]", "[::ffff:0:127.0.0.1]",
			"[2001:0:7f00:1::]", "[2001::80ff:fffe]", "[2001:4860::5efe:7f00:1]", "[2001:4860::200:5efe:7f00:1]", "[::1%lo]", "[::1%25lo]", "[127.0.0.1]",
			"localhost", "LOCALHOST", "LocalHost.", "a.localhost", "localhost.localdomain", "ip6-localhost", "host.docker.internal",
			"localtest.me", "app.localtest.me", "lvh.me", "x.y.lvh.me", "vcap.me", "traefik.me",
			"127.0.0.1.nip.io", "app.127.0.0.1.nip.io", "app-127-0-0-1.nip.io", "7f000001.nip.io", "127-0-0-1.sslip.io", "www.127.0.0.1.xip.io", "--1.sslip.io",
			"127.0.0.1.example.com", "127%2e0%2e0%2e1", "%31%32%37.0.0.1", "%6c%6f%63alhost", "%256c%256f%2563alhost",
			"１２７.０.０.１", "127。0。0。1", "127｡0｡0｡1", "①②⑦.⓪.⓪.①", "¹²⁷.⁰.⁰.¹", "₁₂₇.1", "𝟏𝟐𝟕.0.0.1", "⒈27.1.127.0.0.1.nip.io", "１２７．１", "ｌｏｃａｌｈｏｓｔ", "ⓁⓄⒸⒶⓁⒽⓄⓈⓉ",
			"𝓵𝓸𝓬𝓪𝓵𝓱𝓸𝓼𝓽", "ℓocalhoſt", "٠x7f.1.127.0.0.1.nip.io", "١٢٧.٠.٠.١", "०", "local\u00adhost", "local\u200bhost", "127.0.0.1\u2060", "0127.0.0.1", "00127.0.0.1",
			"6425673729", "383.0.0.1", "127.0.0.1..", "localhost..",
		},
		isMetadata: {
			"169.254.169.254", "169.254.1.1", "2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "025177524776", "169.254.43518", "169.16689662",
			"[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fe80::1]", "[fe80::1%eth0]", "[fe80::1%25en0]",
			"[febf::1]", "fe80::a9fe:a9fe%eth0", "168.63.129.16", "192.0.0.192", "100.100.100.200", "[fd00:ec2::254]", "[FD00:0EC2::0254]", "[fd20:ce::254]",
			"metadata", "METADATA.google.internal", "metadata.google.internal.", "metadata.goog", "instance-data", "instance-data.ec2.internal",
			"169.254.169.254.nip.io", "169-254-169-254.sslip.io", "a9fea9fe.nip.io", "１６９。２５４。１６９。２５４", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "⑯⑨.㉕④.⑯⑨.㉕④",
			"169%2e254%2e169%2e254", "169.254.169.{254}", "7147006462",
		},
		isPrivate: {
			"10.0.0.1", "10.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "0xc0a80101", "192.11010305", "100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255",
			"192.0.0.1", "192.0.2.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "4294967295", "0xffffffff", "-1",
			"[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]", "[100::1]", "[4000::1]", "[::2:0:0]", "[::ffff:10.0.0.1]", "[64:ff9b:1::1]", "[64:ff9b::a00:1]",
			"[2002:c0a8:101::]", "[::8.8.8.8]", "[3fff::1]", "printer", "db", "intranet", "nas.local", "x.internal", "router.lan", "router.home.arpa", "wiki.corp", "kubernetes",
			"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "app.test", "x.onion", "box.tail1234.ts.net", "fritz.box",
			"10-0-0-1.nip.io", "192-168-1-1.0123.plex.direct", "ip-10-0-0-1.ec2.internal", "010.8.8.8", "0172.016.0.1",
		},
		isPublic: {
			"example.com", "EXAMPLE.com.", "8.8.8.8", "134744072", "1.1", "[2606:4700::1111]", "2606:4700::1111", "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2002:808:808::]",
			"localhost.example.com", "internal.example.com", "metadata.example.com", "mylocalhost.com", "notlocal.dev", "nip.io", "127.example.com", "münchen.de", "例え.jp",
			"xn--mnchen-3ya.de", "пример.xn--p1ai", "_dmarc.example.com", "ec2-54-1-2-3.compute-1.amazonaws.com", "cafe0001.example.com", "ｅｘａｍｐｌｅ．com", "%65xample.com",
			"172.32.0.1", "172.15.0.1", "11.0.0.1", "100.128.0.1", "169.253.0.1", "192.167.1.1", "128.0.0.1",
		},
		isUnclear: {
			"8.8.8.8.8", "example..com", "exa mple.com", "08.8.8.8", "8.8.8.888", "example.com..", "host!.com", "example.c0m", "[8.8.8.8.8]", "[::g]", "x.nip.io", "8.8.8.8.nip.io",
			"shop۲۴.ir", "exa\u200dmple.com", "ᵉxample.com", "exam℀ple.com", "straße.de", "a%zz.com", "%2565xample.com", "{example.com,example.org}",
			strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 200) + "com", "\xff.com",
		},
	} {
		for _, host := range hosts {
			if r := judgeHost(host); wordOf(r) != word {
				t.Errorf("judgeHost(%q) is %s (%s), want %s", host, wordOf(r), r.why, word)
			}
			if !strings.Contains(host, ":") || strings.HasPrefix(host, "[") {
				if r := judgeHost("user:secret@" + host + ":8080"); wordOf(r) != word {
					t.Errorf("judgeHost(user:secret@%q:8080) is %s (%s), want %s", host, wordOf(r), r.why, word)
				}
				if r := judgeURL("https://" + host + ":443/a/@b?c#d"); wordOf(r) != word {
					t.Errorf("judgeURL(https://%q:443/…) is %s (%s), want %s", host, wordOf(r), r.why, word)
				}
			}
		}
	}
}

// SPEC P-03, P-06
func TestTheMostSevereReadingOfAURLCounts(t *testing.T) {
	t.Parallel()
	for word, urls := range map[string][]string{
		isPublic: {
			"http://example.com", "HTTPS://EXAMPLE.COM:443/x", "ws://example.com/", "git://example.com/x.git", "ssh://git@example.com:22/x.git", "ftp://user:pw@example.com/",
			"git+ssh://git@example.com/x", "git@github.com:org/repo.git", "example.com", "example.com/path", "example.com:8080/x", "http://127.0.0.1@example.com/",
			"https://example.com/@127.0.0.1", "https://example.com/?u=http://127.0.0.1", "https://example.com?x=1", "https://example.com#x", " https://example.com\n",
			"https://example.com/" + strings.Repeat("x", 1<<16), "http://example.com/a\\b",
		},
		isLoopback: {
			"http://example.com@127.0.0.1/", `http://127.0.0.1\@example.com/`, `http://example.com\@127.0.0.1/`, "http://example.com#@127.0.0.1/", "http://example.com?@127.0.0.1/",
			"http://a@127.0.0.1:80@example.com/", "http://1.1.1.1 &@127.0.0.1# @8.8.8.8/", "http://1.1.1.1 &@8.8.8.8# @127.0.0.1/", "ht\ntp://127.0.0.1/", "http://127.0\t.0.1/",
			"http:127.0.0.1", "http:/127.0.0.1/", "http:///127.0.0.1/", "http:////127.0.0.1/", `http:\\127.0.0.1\`, `http:/\127.0.0.1`, "//127.0.0.1/x", `\\127.0.0.1\share`,
			"http://127.0.0.1%2f@example.com/", "http://127.0.0.1%23@example.com/", "http://example.com%00.x@127.0.0.1/", "http://127.0.0.1%00.example.com/",
			"http://127.0.0.1%0d%0aHost:example.com/", "http://127.0.0.1／@example.com", "http://example.com＠127.0.0.1/", "http://127.0.0.1：80＠example.com/", "http://[::1]@[::1]/",
			"http://example.com@[::1]:80/", "http://user:p%40ss@127.0.0.1/", "localhost:8080", "localhost:8080/x", "user@localhost:path", "127.1:80", "::1", "http://::1/", "[::1]:80",
			"gopher://127.0.0.1:6379/_x", "dict://localhost:11211/", "ldap://127.1/", "jar:http://127.0.0.1!/a", "view-source:http://localhost/", "blob:http://localhost/x",
			"view-source:jar:http://127.0.0.1/", "http://127.0.0.1:11211:80/", "http://127.0.0.1:x/", "\x01http://127.0.0.1/", "http://127.0.0.1,example.com/", "http://{127.0.0.1,a}/",
			"http://127.0.0.1/" + strings.Repeat("x", 1<<16), "https://localhost#x", "http://[::1", "https://localhost?x", "http://0/", "unknown://localhost/",
		},
		isMetadata: {
			"http://169.254.169.254/latest/meta-data/", "gopher://169.254.169.254/", "http://example.com@169.254.169.254/", `http://169.254.169.254\@example.com`,
			"http://127.0.0.1@169.254.169.254@example.com/", "http://metadata.google.internal/computeMetadata/v1/", "root@169.254.169.254:x", "http://[::ffff:a9fe:a9fe]:80/",
			"jar:http://169.254.169.254!/", "169.254.169.254/latest",
		},
		isPrivate: {"http://10.0.0.1/", "http://db:5432/", "user@nas:share", "git:repo", "http://intranet/", "rsync://backup/x", "backup::module", "data:80/x", "foo:bar"},
		isSafe:    {"data:text/plain,hello", "data:,x", "DATA:;base64,AAAA", "data:image/png;base64," + strings.Repeat("A", 1<<16)},
		isUnclear: {
			"", " ", "http://", "http:///", "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "FILE:/etc/passwd", "javascript:alert(1)", "unix:///run/docker.sock",
			"http+unix://%2Frun%2Fdocker.sock/info", "ext::sh -c date", "mailto:a@example.com", "gopher://example.com/", "unknown://example.com/", "/etc/passwd", "./x", "../x", "~/x",
			`C:\x`, "c:/x", "http://a@b@example.com/", `http://example.com\x`, "http://exa\tmple.com/", "http:/example.com/", "//example.com/x", "http://example.com/x\ny",
			"http://" + strings.Repeat("a", 1<<16), "http://" + strings.Repeat("a.", 1<<16) + "com/", strings.Repeat("/", 1<<16), "https://example.com?mail=a@example.org",
			"view-source:http://example.com/", "http://example.com:port/", "http://example.com:1:2/", "view-source:http://" + strings.Repeat("a", 1018),
		},
	} {
		for _, url := range urls {
			if r := judgeURL(url); wordOf(r) != word {
				t.Errorf("judgeURL(%.100q) is %s (%s), want %s", url, wordOf(r), r.why, word)
			}
		}
	}
}

func TestReachNamesHostAndFile(t *testing.T) {
	t.Parallel()
	for raw, host := range map[string]string{
		"HTTP://ExAmple.COM.:80/": "example.com", "0x7f.1": "127.0.0.1", "[0:0::1]": "::1", "http://[::FFFF:7f00:1]/": "127.0.0.1", "git@GitHub.com:a/b": "github.com",
		"１２７．１": "127.0.0.1", "fe80::1%eth0": "fe80::1", "data:,x": "", "münchen.DE": "münchen.de", "gİthub.com": "gi\u0307thub.com", "ᵍithub.com": "ᵍithub.com", "%2567ithub.com": "%2567ithub.com", "http://a@127.0.0.1@example.com": "127.0.0.1",
	} {
		if got := judgeURL(raw); got.host != host {
			t.Errorf("judgeURL(%q).host = %q, want %q", raw, got.host, host)
		}
	}
	for raw, file := range map[string]string{
		"file:///etc/pass%77d": "/etc/passwd", "file:/etc/passwd": "/etc/passwd", "file://localhost/etc/passwd?x#y": "/etc/passwd", "fi\nle:///etc/passwd": "/etc/passwd",
		"file://host": "/", "../up": "../up", "/abs": "/abs", "~/x": "~/x", "//etc/passwd": "//etc/passwd", "https://example.com/etc": "", "file:///" + strings.Repeat("a", 5000): "/" + strings.Repeat("a", 5000),
	} {
		if got := judgeURL(raw); got.file != file {
			t.Errorf("judgeURL(%.40q).file = %.60q, want %.60q", raw, got.file, file)
		}
	}
	if r := judgeHost("data:text/plain,x"); r.host != "data" || r.zone != ZoneMachine {
		t.Errorf("judgeHost takes data: for a scheme: %+v", r)
	}
}

// Judging an address takes little time and memory, whatever its length.
//
// The test is not parallel, because it counts allocations of the process.
func TestLongAddressesCostNothing(t *testing.T) { //nolint:paralleltest // see above
	long := map[string]string{}
	for _, unit := range []string{"a", "a.", "/", "@", "\t", " ", "%", "%25", "1", "1.", ":", "[", "①", "\xff", "view-source:", "http://", "-", "0x", "127.", "\\", "#", "?"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		long[unit] = text
		long["http://"+unit] = "http://" + text
		long["http://x/"+unit] = "http://example.com/" + text
		long["data:"+unit] = "data:," + text
	}
	for name, text := range long {
		start := time.Now()
		r := judgeURL(text)
		if took := time.Since(start); took > 10*time.Second { // an algorithm that is not linear would take minutes
			t.Errorf("1 MiB of %q takes %v", name, took)
		}
		if len(r.why) > 2048 {
			t.Errorf("1 MiB of %q is explained in %d bytes", name, len(r.why))
		}
		if n := testing.AllocsPerRun(1, func() { judgeURL(text) }); n > 3000 {
			t.Errorf("1 MiB of %q takes %v allocations", name, n)
		}
	}
}

// notPublic reports whether the standard library knows that an address is not public.
func notPublic(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsMulticast() || a.IsInterfaceLocalMulticast() || a.IsUnspecified()
}

// The fuzz test checks three things. Nothing panics. An address that the standard library
// knows as private is never public, alone or in a URL. Odd characters around a host never
// make it public.
//
// SPEC P-03
func FuzzJudgeURL(f *testing.F) {
	for _, seed := range []string{
		"http://127.0.0.1/", "[::1]:80", "fe80::1%eth0", "user@host:path", "http://example.com#@127.0.0.1", "2130706433", "１２７。1", "data:,x", "file:///etc", `\\h\s`, "%31",
		"192.168.0.1", "::ffff:10.0.0.1", "::1%25lo", "[", "]", "@", ":", "%", "0x", "a:b:c", "http://a\\@b", "x--1.sslip.io",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		direct := judgeURL(text)
		if direct.zone < ZoneNetwork && (direct.zone != ZoneSafe || !strings.Contains(text, ",")) || direct.zone > ZoneMachine {
			t.Errorf("judgeURL(%q) is in zone %v", text, direct.zone)
		}
		if direct.zone == ZoneMachine && direct.why == "" {
			t.Errorf("judgeURL(%q) says no reason", text)
		}
		if direct.protection != "" && direct.zone != ZoneMachine {
			t.Errorf("judgeURL(%q) is held by %s in zone %v", text, direct.protection, direct.zone)
		}
		addr, err := netip.ParseAddr(text)
		if err != nil || !notPublic(addr) || strings.ContainsFunc(addr.Zone(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return
		}
		spelled := text
		if addr.Is6() {
			spelled = "[" + text + "]"
		}
		for _, form := range []string{text, spelled, spelled + ":1", "http://" + spelled + "/", "https://u:p@" + spelled + ":1/x?y#z", "http:" + spelled, "http:////" + spelled} {
			if r := judgeURL(form); r.zone != ZoneMachine || r.protection == "" {
				t.Errorf("judgeURL(%q) is %s (%s), but %s is not public", form, wordOf(r), r.why, addr)
			}
			if r := judgeHost(form); !strings.HasPrefix(form, "http:") && (r.zone != ZoneMachine || r.protection == "") {
				t.Errorf("judgeHost(%q) is %s (%s), but %s is not public", form, wordOf(r), r.why, addr)
			}
		}
	})
}

// All spellings of an address get the same result. One exception: a leading 0 may make
// the result more severe, because some programs ignore the 0.
//
// SPEC P-03
func FuzzEverySpellingIsJudgedAlike(f *testing.F) {
	for _, seed := range []uint32{0, 0x7f000001, 0x0a000001, 0xa9fea9fe, 0xc0a80101, 0x08080808, 0xa83f8110, 0xffffffff, 0x64646464, 0xe0000001} {
		f.Add(seed, uint64(0x5eed))
	}
	f.Fuzz(func(t *testing.T, bits uint32, choices uint64) {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], bits)
		plain := judgeAddr(netip.AddrFrom4(b))
		host := spell(b, choices)
		r := judgeHost(host)
		octal := choices&octalBit != 0
		if wordOf(r) != wordOf(plain) && (!octal || r.severity() < plain.severity()) {
			t.Errorf("%s is %s, but spelled %q it is %s (%s)", netip.AddrFrom4(b), wordOf(plain), host, wordOf(r), r.why)
		}
		if !octal && r.protection == plain.protection && r.host != plain.host && !strings.Contains(host, ":") {
			t.Errorf("spelled %q the host is %q, want %q", host, r.host, plain.host)
		}
		if inURL := judgeURL("http://" + host + "/"); wordOf(inURL) != wordOf(r) {
			t.Errorf("%q is %s, but %s in a URL", host, wordOf(r), wordOf(inURL))
		}
	})
}

const octalBit = 1 << 8

// spell writes an address in one of many spellings.
func spell(b [4]byte, choices uint64) string {
	take := func(n uint64) uint64 {
		c := choices % n
		choices = choices/n ^ choices<<7
		return c
	}
	octal := choices&octalBit != 0
	n := binary.BigEndian.Uint32(b[:])
	if !octal && take(3) == 0 {
		forms := []string{"[::ffff:%x:%x]", "[64:ff9b::%x:%x]", "[2002:%x:%x::]", "[::ffff:0:%x:%x]"}
		text := fmt.Sprintf(forms[take(uint64(len(forms)))], n>>16, n&0xffff)
		if take(2) == 0 {
			return strings.ToUpper(text)
		}
		return text
	}
	number := func(v uint32) string {
		switch {
		case octal:
			return fmt.Sprintf("0%o", v)
		case take(2) == 0:
			return fmt.Sprintf("0x%x", v)
		default:
			return fmt.Sprint(v)
		}
	}
	var parts []string
	rest, left := n, 32
	for count := take(4); count > 0; count-- {
		parts = append(parts, number(rest>>(left-8)))
		left -= 8
		rest &= 1<<left - 1
	}
	dots := []string{".", "。", "．", "｡", "%2e"}
	text := strings.Join(append(parts, number(rest)), dots[take(uint64(len(dots)))])
	disguise := take(4)
	var out strings.Builder
	for _, r := range text {
		switch {
		case disguise == 0 && '0' <= r && r <= '9' && !strings.Contains(text, "%"):
			out.WriteRune(r + 0xFEE0)
		case disguise == 1 && '0' <= r && r <= '9' && !strings.Contains(text, "%"):
			out.WriteRune(r - '0' + 0x1D7CE)
		case disguise == 2 && take(3) == 0 && r < 0x80 && r != '%' && !strings.Contains(text, "%"):
			fmt.Fprintf(&out, "%%%02X", r)
		default:
			out.WriteRune(r)
		}
	}
	if take(4) == 0 {
		out.WriteByte('.')
	}
	return out.String()
}
