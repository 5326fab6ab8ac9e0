package declare

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/frontmatter"
)

func (h *hookReading) webhook(v frontmatter.Value) {
	w := new(Endpoint)
	h.d.Webhook = w
	read := func(v frontmatter.Value) {
		w.URL = h.text(v, "url")
		if w.URL == "" {
			return
		}
		if _, err := endpoint(w.URL); err != nil {
			h.faultf(v.Line, "url: %v", err)
		}
	}
	if v.Kind == frontmatter.String {
		read(v)
		return
	}
	h.mapping(v, "webhook", map[string]func(frontmatter.Value){
		"url": read,
		"secret": func(v frontmatter.Value) {
			w.Secret = h.text(v, "secret")
			if w.Secret != "" && !variable.MatchString(w.Secret) {
				h.faultf(v.Line, "secret is not the name of an environment variable: put the secret into an environment variable, and write the name of the variable here")
			}
		},
	})
	if v.Kind == frontmatter.Map && w.URL == "" {
		h.faultf(v.Line, "the webhook has no url: give it one")
	}
}

// endpoint checks the address of a webhook. It must be https, or http to this machine.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the value is not a URL: write https://host/path")
	case u.User != nil:
		return nil, errors.New("the URL contains a user or a password: remove them, and use secret to sign the calls")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("the URL has no host: write https://host/path")
	case u.Fragment != "":
		return nil, errors.New("the URL has a fragment, which is never sent to a server: remove # and the text after it")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return u, nil
	default:
		return nil, errors.New("the URL must begin with https (http is only allowed to this machine): use https")
	}
}

// isLoopback reports whether a host name means this machine. localhost could resolve to
// another machine, so onlyLoopback checks the address again at the connection.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// actions are the names of the built-in actions.
var actions = []string{"log", "save_json", "approve", "deny", "remind"}

// action reads an action: a name, or a name with its settings.
func (h *hookReading) action(v frontmatter.Value) {
	a := new(Action)
	h.d.Action = a
	if v.Kind == frontmatter.String {
		h.word(v, "action", actions, func(s string) error {
			if !slices.Contains(actions, s) {
				return hook.ErrNotFound
			}
			a.Name = s
			return nil
		})
	} else {
		form := make(map[string]func(frontmatter.Value))
		for _, name := range actions {
			form[name] = func(v frontmatter.Value) {
				if a.Name != "" {
					h.faultf(v.Line, "the hook has two actions, %s and %s: remove one of them", a.Name, name)
				}
				a.Name = name
				if name == "log" && v.Kind == frontmatter.Map {
					h.log(a, v)
					return
				}
				a.Text = h.text(v, name)
			}
		}
		h.mapping(v, "action", form)
		if v.Kind == frontmatter.Map && len(v.Map) == 0 {
			h.faultf(v.Line, "the action has no name: use one of %s", strings.Join(actions, ", "))
		}
	}
	if a.Name != "" && h.wire != nil {
		h.actionFits(a, v.Line)
	}
}

// logLevels are the valid levels of the action log.
var logLevels = []string{"debug", "info", "warn", "error"}

func (h *hookReading) log(a *Action, v frontmatter.Value) {
	h.mapping(v, "log", map[string]func(frontmatter.Value){
		"message": func(v frontmatter.Value) { a.Text = h.text(v, "message") },
		"content": func(v frontmatter.Value) { a.Content = h.boolean(v, "content") },
		"level": func(v frontmatter.Value) {
			h.word(v, "level", logLevels, func(s string) error {
				if !slices.Contains(logLevels, s) {
					return hook.ErrNotFound
				}
				return a.Level.UnmarshalText([]byte(s))
			})
		},
	})
}

// actionFits reports a fault if the phase does not support the action, or if the text of the
// action is missing or invalid.
func (h *hookReading) actionFits(a *Action, line int) {
	can := h.wire.Info().Capabilities
	switch a.Name {
	case "approve":
		if !can.Has(hook.CanAsk) {
			h.faultf(line, "approve asks a person before a tool call, which is not possible at %s: use phase tool.pre", h.d.Phase)
		}
	case "deny":
		if !can.Has(hook.CanBlock) && !can.Has(hook.CanApprove) || h.d.Phase == "turn.stop" {
			h.faultf(line, "there is nothing to deny at %s: use a gate, such as tool.pre", h.d.Phase)
		}
	case "remind":
		if !can.Has(hook.CanAddContext) {
			h.faultf(line, "the action remind cannot be used at %s, because this phase cannot send text to the model: use another phase", h.d.Phase)
		}
		if a.Text == "" {
			h.faultf(line, "remind has no text: write action: {remind: the text}")
		}
	case "save_json":
		if a.Text == "" {
			h.faultf(line, "save_json has no file: write action: {save_json: calls.jsonl}")
		} else if err := saveable(a.Text); err != nil {
			h.faultf(line, "%v", err)
		}
	}
}
