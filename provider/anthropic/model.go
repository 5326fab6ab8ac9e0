package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"unique"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// Adaptive is a value of Options.Thinking. It lets the model decide how much it thinks. Newer
// models accept nothing else.
const Adaptive = -1

// Options are the settings of a model.
type Options struct {
	// Key is the API key. Defaults to the environment variable ANTHROPIC_API_KEY.
	Key string
	// URL is the address of the service, without /v1/messages. Defaults to
	// https://api.anthropic.com.
	URL string
	// Provider names the service. Thinking is sent back only to the service it came from,
	// since no service accepts the signatures of another. Set it to anthropic if URL leads
	// to Anthropic through an address of your own. Defaults to anthropic, or to the host of
	// URL if that is not Anthropic's.
	Provider string
	// HTTPClient sends the requests. Defaults to http.DefaultClient.
	HTTPClient *http.Client
	// MaxTokens limits the response to a request that sets no limit. Defaults to the
	// model's longest output, at most 32,000, or to 8,192 if that is not known.
	MaxTokens int
	// Thinking is how many tokens of a response may be thinking, at least 1,024, or
	// [Adaptive]. If the limit on the response leaves less room, the model thinks less or
	// not at all. Defaults to no thinking.
	Thinking int
	// Window is how many tokens a request and its response may take. Defaults to
	// the built-in table.
	Window int
	// Price is the price of tokens. Defaults to the built-in table.
	Price belay.Price
}

// Model is a Claude model. [New] makes one.
type Model struct {
	name     string
	thinking int
	binds    bool // the model binds its thinking to the preceding messages
	endpoint *wire.Endpoint
	failures wire.Failures
	broken   error // why no request can be sent
	info     func() belay.ModelInfo
	bound    func() int // the limit on a response, if the request sets none
	heads    wire.Heads
	// encoder is the key under which messages keep their encoding, and encode encodes
	// them. Both are made once, since every request looks up every message.
	encoder encoder
	encode  func(*belay.Message) (any, error)
}

var _ belay.InfoModel = (*Model)(nil)

// New returns the model with a name of the API, such as claude-sonnet-4-5. It sends nothing:
// if the key is missing or wrong, the first request fails.
func New(model string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Key == "" {
		o.Key = os.Getenv("ANTHROPIC_API_KEY")
	}
	m := &Model{name: model, thinking: o.Thinking, binds: bindsThinking(model), failures: wire.NewFailures(provider+"/"+model, o.Key), encoder: encoder{unique.Make(cmp.Or(o.Provider, hostOf(o.URL), provider))}}
	m.encode = m.encoder.encode
	header := http.Header{}
	header.Set("Anthropic-Version", "2023-06-01")
	header.Set("X-Api-Key", o.Key)
	if m.binds {
		header.Set("Anthropic-Beta", bindingHeader)
	}
	base, err := wire.ParseURL(cmp.Or(o.URL, "https://"+officialHost), "https://host")
	if err != nil {
		base, m.broken = &url.URL{}, err
	}
	m.endpoint = wire.NewEndpoint(o.HTTPClient, base, header)
	if o.Thinking < leastThinking && o.Thinking != 0 && o.Thinking != Adaptive {
		m.broken = fmt.Errorf("Options.Thinking: %d tokens are too few: set %d or more, or anthropic.Adaptive", o.Thinking, leastThinking)
	}
	if o.Key == "" {
		m.broken = wire.NoKey("ANTHROPIC_API_KEY")
	}
	m.info = sync.OnceValue(func() belay.ModelInfo { return describe(model, &o) })
	m.bound = func() int {
		switch longest := m.info().MaxOutput; {
		case o.MaxTokens > 0:
			return o.MaxTokens
		case longest > 0:
			return min(longest, 32_000)
		default:
			return 8_192
		}
	}
	return m
}

// officialHost is the host of Anthropic's API.
const officialHost = "api.anthropic.com"

// hostOf returns the host of an address, or an empty string for Anthropic's.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != officialHost {
		return u.Host
	}
	return ""
}

// Info returns the model's name, window, longest output and price.
func (m *Model) Info() belay.ModelInfo { return m.info() }
