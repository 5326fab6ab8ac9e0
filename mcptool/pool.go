package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay/internal/redact"
)

// Pool lets extensions share servers. Two servers are the same server if they have the
// same program, arguments, directory and environment, or the same URL and headers.
// [Server].Apart must also be equal; names may differ. The zero value is ready to use. A
// pool needs no Close: a server ends with the last extension that uses it.
type Pool struct {
	mu    sync.Mutex
	links map[string]*link
}

// spec is a server declaration with all defaults and variables filled in.
type spec struct {
	argv, env []string
	dir       string
	root      string // the directory of the project, which a server in a process of this machine learns
	url       string
	headers   map[string]string
	apart     string
	sampling  bool
	prepare   func(context.Context, []string) ([]string, error)
	known     *knownSecrets     // removes the secrets that the server was given
	logins    *Logins           // nil if the server does not use logins
	login     string            // the name of the server, if it uses logins
	transport http.RoundTripper // nil means the default transport
	serve     func(context.Context, io.ReadCloser, io.WriteCloser) error
}

// resolve makes the spec of a declaration.
func resolve(s *Server, env *environ, dir string) (*spec, error) {
	if s.Environ != nil {
		env = newEnviron(s.Environ)
	}
	variables, secrets, err := env.fill(s.Env)
	if err != nil {
		return nil, fmt.Errorf("env: %w", err)
	}
	headers, more, err := env.fill(s.Headers)
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	out := &spec{url: s.URL, headers: headers, apart: s.Apart, sampling: s.Sampling, prepare: s.Prepare, serve: s.Serve, known: newKnown(slices.Concat(secrets, more, literals(s)))}
	if s.URL == "" {
		out.root = project(dir)
	}
	if s.Command != "" {
		out.argv, out.env, out.dir = append([]string{s.Command}, s.Args...), env.of(variables), s.dir(dir)
	}
	return out, nil
}

// mostHidden is the maximum length in bytes of a text that is searched for secrets,
// because the search is slow. The function hide drops the rest of the text.
const mostHidden = 16 << 10

// hide removes secrets from a text for logs and users: the secrets of the declaration,
// and everything that looks like a secret.
func (s *spec) hide(text string) string {
	text = s.known.Replace(text)
	if len(text) > mostHidden {
		text = strings.ToValidUTF8(text[:mostHidden], "") + "…"
	}
	return redact.Text(text)
}

// key returns a hash that identifies a server. Secrets cannot be read from it.
func (s *spec) key() string {
	own := ""
	if s.serve != nil { // functions cannot be compared
		own = fmt.Sprintf("%p", s)
	}
	data, err := json.Marshal([]any{s.argv, s.env, s.dir, s.root, s.url, s.headers, s.apart, s.login, s.sampling, own})
	if err != nil { // texts always have a JSON form
		panic(err)
	}
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// take returns the link to a server. It starts a link if the pool has none. The caller
// must call letGo when it no longer needs the link.
func (p *Pool) take(s *Server, spec *spec, opts *Options) *link {
	key := spec.key()
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[key]
	if l == nil {
		l = newLink(s.Name, s.Start, spec, opts)
		l.pool = p
		if p.links == nil {
			p.links = make(map[string]*link)
		}
		p.links[key] = l
		go l.run()
	}
	l.users++
	return l
}

// letGo releases a link for one extension. When no extension uses the link, the link ends
// after its last call. letGo does not wait for this.
func (p *Pool) letGo(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	maps.DeleteFunc(p.links, func(_ string, other *link) bool { return other == l })
	if l.held == 0 {
		l.end(errClosed)
	}
}

// hold keeps a link open for a call, even if all extensions release the link. The caller
// must call release after the call. hold returns false if the link has ended.
func (p *Pool) hold(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.held++
	return true
}

func (p *Pool) release(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.held--; l.held == 0 && l.users == 0 {
		l.end(errClosed)
	}
}

// has reports whether an extension uses the link.
func (p *Pool) has(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.users > 0
}
