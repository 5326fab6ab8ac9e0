package permit

import (
	"fmt"
	"net/netip"
	"strings"
)

// maxAuthority is how many bytes of a URL are searched for its host. A URL with a longer
// host is zone 5.
const maxAuthority = 1024

// The schemes that Belay knows. A URL with any other scheme is zone 5.
var (
	// lenient are schemes after which browsers accept any number of slashes and
	// backslashes.
	lenient = map[string]bool{"http": true, "https": true, "ws": true, "wss": true, "ftp": true}
	strict  = map[string]bool{
		"git": true, "ssh": true, "sftp": true, "scp": true, "ftps": true, "rsync": true, "svn": true,
		"git+http": true, "git+https": true, "git+ssh": true, "ssh+git": true, "svn+ssh": true, "svn+http": true, "svn+https": true,
		"hg+http": true, "hg+https": true, "hg+ssh": true, "bzr+http": true, "bzr+https": true, "bzr+ssh": true, "bzr+sftp": true,
	}
	// nested are schemes that are followed by another URL.
	nested = map[string]bool{"jar": true, "view-source": true, "blob": true, "filesystem": true, "feed": true, "url": true, "wyciwyg": true, "cache": true}
	// hostless has the schemes that name no host on a network. Each value says what the
	// scheme stands for.
	hostless = map[string]string{
		"javascript": "code", "vbscript": "code", "about": "a page of the program itself", "chrome": "a page of the program itself",
		"mailto": "an email", "tel": "a phone call", "sms": "a message", "unix": "a socket of this machine", "http+unix": "a socket of this machine",
		"https+unix": "a socket of this machine", "unix+http": "a socket of this machine", "npipe": "a socket of this machine", "fd": "an open file of this process",
		"ext": "a command that git runs", "fish": "a shell on another machine",
	}
)

// judgeURL returns the reach of a URL. Browsers, curl, git and libraries read unusual
// forms differently. Then judgeURL uses the most severe reading, and an ambiguous URL is
// never public. judgeURL also accepts host:path as scp does, and hosts without a scheme.
//
// It reads only the beginning of the text, so that long URLs cost no more.
func judgeURL(raw string) reach { return judgeNested(raw, 0) }

func judgeNested(raw string, depth int) reach {
	raw = strings.TrimFunc(raw, isBlank)
	head, odd, whole := urlHead(raw)
	if head == "" {
		return reach{zone: ZoneMachine, why: "the address is empty"}
	}
	scheme, rest, ok := cutScheme(head)
	var r reach
	switch {
	case ok && scheme == "data":
		return reach{zone: ZoneSafe, why: "a data: URL contains its own content"}
	case ok && scheme == "file":
		return reach{zone: ZoneMachine, file: filePath(raw), why: "a file: URL names a file of this machine"}
	case ok && len(scheme) == 1, isPath(head):
		return reach{zone: ZoneMachine, file: raw, why: shown(head) + " is a path of this machine, not an address"}
	case ok && nested[scheme] && depth < 3:
		inner, _, _ := strings.Cut(rest, "!")
		r = judgeNested(inner, depth+1).unclear(scheme + ": URLs contain another URL, which programs read in different ways")
	case ok && hostless[scheme] != "":
		r = reach{zone: ZoneMachine, why: fmt.Sprintf("%s: means %s", scheme, hostless[scheme])}
	case ok:
		region, slashes := skipSlashes(rest)
		r = judgeAuthority(region, whole, false)
		odd = odd || slashes != "//"
		if !lenient[scheme] && !strict[scheme] {
			r = r.unclear(fmt.Sprintf("Belay does not know where %s: URLs lead", shown(scheme)))
		}
	default:
		return judgeBare(head, odd, whole)
	}
	return r.unless(odd)
}

// judgeHost returns the reach of a host, with or without user, port and path. ssh, scp,
// rsync and git accept such hosts. judgeHost also accepts a URL. But it reads a text such
// as data:x as a host, where judgeURL sees a URL with a scheme.
func judgeHost(hostport string) reach {
	head, odd, whole := urlHead(strings.TrimFunc(hostport, isBlank))
	switch {
	case strings.Contains(head, "://"):
		return judgeURL(hostport)
	case head == "":
		return reach{zone: ZoneMachine, why: "the host is empty"}
	default:
		return judgeBare(head, odd, whole)
	}
}

// judgeBare judges a text without a scheme. curl reads it as a host, and git and scp read
// it as host:path.
func judgeBare(head string, odd, whole bool) reach {
	region, slashes := skipSlashes(head)
	r := judgeAuthority(region, whole, true).unless(odd || slashes != "")
	if slashes != "" {
		r.file = head
	}
	return r
}

// unless raises the zone of an odd address, so that the address does not count as public.
func (r reach) unless(odd bool) reach {
	if odd {
		return r.unclear("programs read this unusual address in different ways")
	}
	return r
}

// isBlank reports whether programs drop a character at the start or end of a URL.
func isBlank(r rune) bool { return r <= ' ' }

// urlHead returns the beginning of a URL, which contains the host. It drops tabs and
// newlines, as browsers do, and sets odd if there are any. whole is false if more text
// follows.
func urlHead(raw string) (head string, odd, whole bool) {
	var b strings.Builder
	for i := range len(raw) {
		switch c := raw[i]; {
		case c == '\t' || c == '\n' || c == '\r':
			odd = true
		case b.Len() > 2*maxAuthority:
			return b.String(), odd, false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), odd, true
}

// cutScheme splits off a scheme. A word before a colon is not a scheme if a port follows,
// or if no scheme can have that name. localhost:8080 and host.example:path are hosts.
func cutScheme(s string) (scheme, rest string, ok bool) {
	i := strings.IndexByte(s, ':')
	if i <= 0 {
		return "", s, false
	}
	scheme = strings.ToLower(s[:i])
	for j, c := range []byte(scheme) {
		letter := 'a' <= c && c <= 'z'
		if !letter && (j == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return "", s, false
		}
	}
	rest = s[i+1:]
	switch {
	case scheme == "data":
		// If data is the name of a host, a port or a path follows it.
		ok := strings.Contains(rest, ",") && strings.Trim(rest[:1], "0123456789/\\") != ""
		return scheme, rest, ok
	case lenient[scheme] || nested[scheme] || hostless[scheme] != "" || scheme == "file":
		return scheme, rest, true
	case strings.HasPrefix(rest, "//"):
		return scheme, rest, true
	case len(scheme) == 1 && strings.ContainsAny(rest[:min(1, len(rest))], `/\`):
		return scheme, rest, true // a drive of Windows
	default:
		return "", s, false
	}
}

// isPath reports whether a text is a path rather than an address.
func isPath(s string) bool {
	return s[0] == '/' && !strings.HasPrefix(s, "//") || s[0] == '~' ||
		s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

// filePath returns the path of a file: URL.
func filePath(raw string) string {
	_, rest, _ := strings.Cut(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(raw), ":")
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		i := strings.IndexByte(after, '/')
		if i < 0 {
			return "/"
		}
		rest = after[i:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	return percentDecode(rest)
}

func skipSlashes(s string) (rest, slashes string) {
	rest = strings.TrimLeft(s, `/\`)
	return rest, s[:len(s)-len(rest)]
}

// judgeAuthority judges user, host and port at the beginning of a text. whole is false if
// the text was cut off. If scp is set, a path may follow the first colon.
func judgeAuthority(s string, whole, scp bool) reach {
	region, _, ends := strings.Cut(s, "/")
	if len(region) > maxAuthority || !ends && !whole {
		return reach{zone: ZoneMachine, why: "the host is too long"}
	}
	region = cutZone(region)
	text, sure := plainHost(region)
	authority, behind := text, ""
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		authority, behind = text[:i], text[i+1:]
	}
	hidden := strings.Count(text, "@") > strings.Count(region, "@") || strings.Count(text, ":") > strings.Count(region, ":") || strings.Contains(text, "/")
	if hidden || strings.ContainsFunc(text, confuses) || strings.Count(authority, "@") > 1 || strings.Contains(behind, "@") {
		return judgePieces(text).unclear("programs disagree about which part of " + shown(text) + " is the host")
	}
	if _, host, ok := strings.Cut(authority, "@"); ok {
		authority = host
	}
	r := judgeHostPort(authority, scp)
	if !sure && r.zone < ZoneMachine {
		r.host = region // the text as written, so that no rule matches it
		r = r.unclear("programs read " + shown(region) + " in different ways")
	}
	return r
}

// confuses reports whether some programs end an authority at a character and others do
// not.
func confuses(r rune) bool { return r == '\\' || r <= ' ' || r == 0x7f || r == '\uFFFD' }

// judgePieces judges everything that some program could read as the host. It ignores a
// plain word without dots, because such a word is most likely a user name.
func judgePieces(text string) reach {
	r := reach{zone: ZoneNetwork}
	for piece := range strings.FieldsFuncSeq(text, func(c rune) bool { return confuses(c) || strings.ContainsRune("@?#/", c) }) {
		next := judgeHostPort(piece, true)
		if word := next.protection == netPrivate && !strings.ContainsAny(next.host, ".:"); !word {
			r = r.worse(next)
		}
	}
	return r
}

func judgeHostPort(s string, scp bool) reach {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, port, closed := strings.Cut(inside, "]")
		r := judgeSpelled(host)
		if !closed || !isPort(port, scp) {
			r = r.unclear(shown(s) + " is neither a host nor an address")
		}
		return r
	}
	if strings.Count(s, ":") >= 2 {
		if addr, err := netip.ParseAddr(s); err == nil {
			return judgeAddr(addr)
		}
	}
	host, _, found := strings.Cut(s, ":")
	r := judgeSpelled(host)
	if found && !isPort(s[len(host):], scp) {
		r = r.unclear(shown(s) + " is not a valid host or host:port")
	}
	return r
}

// isPort reports whether a text is empty, or a colon and a port. If scp is set, it may
// also be a colon and a path.
func isPort(s string, scp bool) bool {
	if s == "" || s == ":" {
		return true
	}
	return s[0] == ':' && (scp || len(s) <= 6 && isNumber(s[1:]))
}

// judgeSpelled judges a host in any spelling. plainHost must have mapped it before.
func judgeSpelled(host string) reach {
	name := strings.TrimRight(host, ".")
	if strings.Contains(name, ":") {
		addr, err := netip.ParseAddr(name)
		if err != nil {
			return reach{zone: ZoneMachine, host: name, why: shown(name) + " is not an address"}
		}
		return judgeAddr(addr)
	}
	for _, reading := range []string{name, plainDigits(name)} {
		addrs, sure, isV4 := parseV4(reading)
		if !isV4 {
			continue
		}
		r := reach{zone: ZoneNetwork, host: name}
		for i, addr := range addrs {
			if next := judgeAddr(addr); i == 0 || next.severity() > r.severity() {
				r = next
			}
		}
		if !sure || reading != name || len(host)-len(name) > 1 {
			r = r.unclear(shown(host) + " is an address that programs read in different ways, or not an address")
		}
		return r
	}
	r := judgeName(name)
	if len(host)-len(name) > 1 {
		r = r.unclear(shown(host) + " is not a host name")
	}
	return r
}

// cutZone removes the zone of an IPv6 address, such as %eth0 in fe80::1%eth0. Otherwise
// plainHost would decode its percent sign.
func cutZone(region string) string {
	i := strings.IndexByte(region, '%')
	if i < 0 || strings.Count(region[:i], ":") < 2 || strings.Trim(region[strings.LastIndexByte(region[:i], '@')+1:i], "[0123456789abcdefABCDEF:.") != "" {
		return region
	}
	if j := strings.IndexByte(region[i:], ']'); j >= 0 {
		return region[:i] + region[i+j:]
	}
	if strings.ContainsAny(region[i:], "@") {
		return region
	}
	return region[:i]
}
