// Package netguard makes HTTP transports that check each address when they connect to it.
//
// It is not safe to look up a name first and to connect later: by then the name may
// resolve to another address. Here the check is part of connecting. The check sees the
// address that the kernel will connect to.
//
// A host name must resolve to a public address, unless [Options].Private has the name.
// localhost must resolve to this machine. A literal IP address may be private. Link-local
// and multicast addresses are always refused. Cloud metadata services use link-local and
// some other addresses, which are also refused. The host of the proxy is not checked.
package netguard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Options are the options of [Transport]. A nil *Options is valid.
type Options struct {
	// Private are hosts that may resolve to private addresses. An entry is a host name, or
	// *.name for all its subdomains. Defaults to none.
	Private []string
	// Proxy means to use the proxy in HTTPS_PROXY, HTTP_PROXY and NO_PROXY. The proxy then
	// resolves names, and their addresses are not checked. Defaults to no proxy.
	Proxy bool
	// Resolver looks up names. Defaults to the resolver of the machine.
	Resolver *net.Resolver
	// connect is for tests. It is called with each address that has passed the check.
	connect func(address string) error
}

// Transport returns a transport that checks addresses. It does not follow redirects. A
// client that follows a redirect uses this transport again, so that the new address is
// checked too.
func Transport(opts *Options) *http.Transport {
	g := &guard{}
	if opts != nil {
		g.Options = *opts
	}
	t := &http.Transport{
		DialContext:       g.dial,
		ForceAttemptHTTP2: true, MaxIdleConns: 16, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
	}
	if g.Proxy {
		t.Proxy = http.ProxyFromEnvironment
		g.proxies = proxies(os.Getenv)
	}
	return t
}

type guard struct {
	Options

	proxies []string // hosts of the proxies
}

// proxies returns the hosts of the proxies in the environment.
func proxies(getenv func(string) string) []string {
	var hosts []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		text := getenv(name)
		if text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			hosts = append(hosts, plain(u.Hostname()))
		}
	}
	return hosts
}

// plain normalizes a host name, so that it can be compared.
func plain(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Resolver: g.Resolver, Control: func(_, to string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(to)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", host, err)
		}
		if err := g.check(host, at.Addr()); err != nil {
			return err
		}
		if g.connect != nil {
			return g.connect(to)
		}
		return nil
	}}
	return dialer.DialContext(ctx, network, address) //nolint:wrapcheck // the HTTP client says what it was about
}

// check returns an error if a connection to this host at this address is not allowed.
func (g *guard) check(host string, addr netip.Addr) error {
	host, addr = plain(host), embedded(addr)
	_, err := netip.ParseAddr(host)
	literal := err == nil
	switch {
	case slices.Contains(g.proxies, host):
		return nil
	case refused(addr):
		return fmt.Errorf("%s leads to %s, a link-local, multicast, metadata or unspecified address: Belay never connects to such an address", host, addr)
	case host == "localhost":
		if !addr.IsLoopback() {
			return fmt.Errorf("localhost resolves to %s, which is not this machine", addr)
		}
		return nil
	case literal, public(addr), g.mayBePrivate(host):
		return nil
	default:
		return fmt.Errorf("%s resolves to the private address %s: add the host to network.private_hosts if that is intended", host, addr)
	}
}

func (g *guard) mayBePrivate(host string) bool {
	return slices.ContainsFunc(g.Private, func(name string) bool {
		name = plain(name)
		if under, ok := strings.CutPrefix(name, "*."); ok {
			return strings.HasSuffix(host, "."+under)
		}
		return host == name
	})
}

// embedded returns the IPv4 address inside an IPv6 address, if there is one. It knows
// mapped, translated (NAT64) and tunnelled (6to4) addresses.
func embedded(addr netip.Addr) netip.Addr {
	addr = addr.WithZone("").Unmap()
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case prefix("64:ff9b::/96").Contains(addr), prefix("::/96").Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:]))
	case prefix("2002::/16").Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	default:
		return addr
	}
}

var prefix = netip.MustParsePrefix

// metadata are the addresses of metadata services that are not link-local.
var metadata = []netip.Prefix{prefix("100.100.100.200/32"), prefix("192.0.0.192/32"), prefix("fd00:ec2::/32"), prefix("fd20:ce::254/128")}

// refused reports whether connections to an address are never allowed.
func refused(addr netip.Addr) bool {
	return addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() || within(addr, metadata)
}

// special are more networks that are not public. Package netip does not know them.
var special = []netip.Prefix{
	prefix("0.0.0.0/8"), prefix("100.64.0.0/10"), prefix("192.0.0.0/24"), prefix("198.18.0.0/15"), prefix("240.0.0.0/4"),
	prefix("64:ff9b:1::/48"), prefix("fec0::/10"), prefix("100::/64"),
}

func public(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !addr.IsLoopback() && !within(addr, special)
}

func within(addr netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
