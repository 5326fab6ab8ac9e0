package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// API is one of OpenAI's two protocols.
type API string

// The protocols.
const (
	// Responses is the newer protocol. Each request contains the model's earlier thinking.
	Responses API = "responses"
	// Chat is Chat Completions, which nearly every server supports.
	Chat API = "chat"
)

// Options are the settings of a model.
type Options struct {
	// Key is the API key. Defaults to the environment variable OPENAI_API_KEY if URL is
	// OpenAI's, otherwise to no key.
	Key string
	// URL is the address of the service with its path, usually /v1. If it has no path, New
	// adds /v1. Defaults to https://api.openai.com/v1.
	URL string
	// API is the protocol. Defaults to Responses if URL is OpenAI's, otherwise to Chat.
	API API
	// Provider names the service. It is the first half of the model's name and selects the
	// provider in the built-in table. Belay sends thinking back only to the provider that
	// wrote it. If URL is your own proxy for OpenAI, set Provider to openai. Defaults to
	// openai, or to the host of URL if that is not OpenAI's.
	Provider string
	// HTTPClient sends the requests. Defaults to http.DefaultClient.
	HTTPClient *http.Client
	// MaxTokens limits the response to a request that sets no limit. Defaults to the
	// service's own limit.
	MaxTokens int
	// Effort is how much the model thinks: none, minimal, low, medium, high or xhigh. Not
	// every model supports all of them. Defaults to the service's default.
	Effort string
	// Summary requests a summary of the thinking: auto, concise or detailed. OpenAI gives it
	// only to verified organisations. Chat has no summaries. Defaults to no summary.
	Summary string
	// Extra is a JSON object. Its fields are added to every request, for features that only
	// some servers have. It cannot contain fields that this package sets. Defaults to none.
	Extra json.RawMessage
	// Window is how many tokens a request and its response may have together. Defaults to
	// the value in the built-in table.
	Window int
	// Price is the price of tokens. Defaults to the price in the built-in table.
	Price belay.Price
}

// Model is a model of OpenAI or of another server. Call [New] to make one.
type Model struct {
	name     string
	provider string
	protocol protocol
	settings settings
	endpoint *wire.Endpoint
	failures wire.Failures
	broken   error // why the model cannot send requests, or nil
	info     func() belay.ModelInfo
	reason   func() bool // reports whether the model thinks
	// encoder returns the protocol that encodes messages. For OpenAI's models that do not
	// think, that protocol leaves out thinking.
	encoder func() protocol
	heads   wire.Heads
}

// settings are the options that are part of a request.
type settings struct {
	maxTokens       int
	effort, summary string
	extra           []byte // the fields in JSON, without the braces around them
	official        bool   // the service is OpenAI
}

var _ belay.InfoModel = (*Model)(nil)

// official is the provider name of OpenAI itself. officialHost is the host of its API.
const (
	official     = "openai"
	officialHost = "api.openai.com"
)

// New returns the model with this name in the API, such as gpt-5.2. New sends nothing. If
// the key is missing or wrong, the first request fails.
func New(model string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	base, broken := baseURL(o.URL)
	if base.Hostname() == officialHost {
		o.Key = cmp.Or(o.Key, os.Getenv("OPENAI_API_KEY"))
		o.API, o.Provider = cmp.Or(o.API, Responses), cmp.Or(o.Provider, official)
		if o.Key == "" {
			broken = wire.NoKey("OPENAI_API_KEY")
		}
	}
	m := &Model{name: model, provider: cmp.Or(o.Provider, base.Host, official), broken: broken}
	m.failures = wire.NewFailures(m.provider+"/"+model, o.Key)
	o.API = cmp.Or(o.API, Chat)
	m.settings = settings{maxTokens: o.MaxTokens, effort: o.Effort, summary: o.Summary, official: m.provider == official}
	switch o.API {
	case Responses:
		m.protocol = responsesProtocol{provider: m.provider}
	case Chat:
		m.protocol = chatProtocol{m.provider, wantsShortIDs(base.Hostname(), model), wantsThoughts(m.provider, base.Hostname())}
	default:
		m.broken = fmt.Errorf("Options.API: %q is not a protocol: use %q or %q", o.API, Responses, Chat)
	}
	if err := m.settings.add(o.Extra, o.API); err != nil {
		m.broken = err
	}
	header := http.Header{}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+o.Key)
	}
	m.endpoint = wire.NewEndpoint(o.HTTPClient, base, header)
	m.info = sync.OnceValue(func() belay.ModelInfo { return describe(m.provider, base, model, &o) })
	m.reason = sync.OnceValue(func() bool { return o.Effort != "" || o.Summary != "" || reasons(m.provider, base, model) })
	m.encoder = sync.OnceValue(func() protocol {
		if w, ok := m.protocol.(responsesProtocol); ok && m.settings.official && !m.reason() {
			w.quiet = true
			return w
		}
		return m.protocol
	})
	return m
}

// baseURL parses Options.URL. It adds the path /v1 if the URL has no path.
func baseURL(address string) (*url.URL, error) {
	fallback := &url.URL{Scheme: "https", Host: officialHost, Path: "/v1"}
	if address == "" {
		return fallback, nil
	}
	u, err := wire.ParseURL(address, "https://host/v1")
	if err != nil {
		return &url.URL{}, err
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u, nil
}

// add stores the fields of Options.Extra.
func (s *settings) add(extra json.RawMessage, api API) error {
	if len(extra) == 0 {
		return nil
	}
	fields, err := readObject(extra)
	if err != nil {
		return fmt.Errorf("Options.Extra: %w", err)
	}
	for _, f := range fields {
		if ownFields[f.key] || f.key == "reasoning" && api == Responses {
			return fmt.Errorf("Options.Extra: Belay already sets the field %q: use another option for it, or remove the field", f.key)
		}
	}
	if len(fields) > 0 {
		written := fields.append(nil)
		s.extra = written[1 : len(written)-1]
	}
	return nil
}

// ownFields are fields that this package sets, or that would change the form of the answer.
// Options.Extra must not contain them.
var ownFields = map[string]bool{
	"model": true, "input": true, "messages": true, "instructions": true, "tools": true, "stream": true, "stream_options": true,
	"store": true, "include": true, "reasoning_effort": true, "max_output_tokens": true, "max_completion_tokens": true, "max_tokens": true,
	"previous_response_id": true, "conversation": true, "background": true, "n": true,
}

// Info returns the model's name, window, longest output and price.
func (m *Model) Info() belay.ModelInfo { return m.info() }
