package mcptool

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay/internal/redact"
)

// Pool is where extensions share servers: those with the same program, arguments,
// directory and environment, or the same address and headers, are one, whatever they are
// called. The zero value is ready to use. A pool owns nothing: a server ends with the
// last extension that has it.
type Pool struct {
	mu    sync.Mutex
	links map[string]*link
}

// spec is a server with all that is filled in.
type spec struct {
	argv, env []string
	dir       string
	url       string
	headers   map[string]string
	apart     string
	prepare   func(context.Context, []string) ([]string, error)
	known     *strings.Replacer // takes the secrets out that the server was given
	transport http.RoundTripper // nil for the usual one
}

// resolve fills in what a server's declaration leaves open.
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
	out := &spec{url: s.URL, headers: headers, apart: s.Apart, prepare: s.Prepare, known: redactor(slices.Concat(secrets, more, literals(s)))}
	if s.Command != "" {
		out.argv, out.env, out.dir = append([]string{s.Command}, s.Args...), env.of(variables), s.dir(dir)
	}
	return out, nil
}

// mostHidden is how much of a text is searched for what looks like a secret. The search is
// slow. The rest of the text is left out.
const mostHidden = 16 << 10

// hide takes secrets out of a text for logs and people: those that the server was given, and
// what looks like one.
func (s *spec) hide(text string) string {
	text = s.known.Replace(text)
	if len(text) > mostHidden {
		text = strings.ToValidUTF8(text[:mostHidden], "") + "…"
	}
	return redact.Text(text)
}

// key tells servers apart. It holds no secret.
func (s *spec) key() string {
	data, err := json.Marshal([]any{s.argv, s.env, s.dir, s.url, s.headers, s.apart})
	if err != nil { // texts always have a JSON form
		panic(err)
	}
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// take returns the link to a server, which is begun if there is none. Whoever takes it
// lets it go.
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

// letGo ends a link when nobody has it any more and its last call is over. It does not
// wait for it.
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

// hold keeps a link for a call, which may go on when those who have the link let it go.
// It reports whether there is anything to hold.
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

// has reports whether somebody has a link, apart from calls.
func (p *Pool) has(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.users > 0
}
