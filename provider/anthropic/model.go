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

// Adaptive is a value of Options.Thinking. It lets the model decide how much it thinks.
// Newer models accept no other value.
const Adaptive = -1

// Options are the settings of a model.
type Options struct {
	// Key is the API key. Defaults to the environment variable ANTHROPIC_API_KEY.
	Key string
	// URL is the address of the service, without /v1/messages. Defaults to
	// https://api.anthropic.com.
	URL string
	// Provider names the service. Belay sends thinking back only to the service that wrote
	// it, because no service accepts the signatures of another. If URL is your own proxy for
	// Anthropic, set Provider to anthropic. Defaults to anthropic, or to the host of URL if
	// that is not Anthropic's.
	Provider string
	// HTTPClient sends the requests. Defaults to http.DefaultClient.
	HTTPClient *http.Client
	// MaxTokens limits the response to a request that sets no limit. Defaults to the model's
	// longest output, but at most 32,000. For an unknown model it defaults to 8,192.
	MaxTokens int
	// Thinking is how many tokens of a response may be thinking: at least 1,024, or
	// [Adaptive]. The model thinks less, or not at all, if the limit on the response is too
	// small. A turn without the budget has the diagnostic model.setting_ignored. Defaults to
	// no thinking.
	Thinking int
	// Window is how many tokens a request and its response may have together. Defaults to
	// the value in the built-in table.
	Window int
	// Price is the price of tokens. Defaults to the price in the built-in table.
	Price belay.Price
}

// Model is a Claude model. Call [New] to make one.
type Model struct {
	name     string
	thinking int
	binds    bool // see bindsThinking
	endpoint *wire.Endpoint
	failures wire.Failures
	broken   error // why the model cannot send requests, or nil
	info     func() belay.ModelInfo
	bound    func() int // the limit on a response if the request sets none
	heads    wire.Heads
	// encoder is the key of the encodings that messages cache, and encode is its method.
	// They are stored here because every request uses them for every message.
	encoder encoder
	encode  func(*belay.Message) (any, error)
}

var _ belay.InfoModel = (*Model)(nil)

// New returns the model with this name in the API, such as claude-sonnet-4-5. New sends
// nothing. If the key is missing or wrong, the first request fails.
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

const officialHost = "api.anthropic.com"

// hostOf returns the host of an address, or an empty string for Anthropic's own address.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != officialHost {
		return u.Host
	}
	return ""
}

// Info returns the model's name, window, longest output and price.
func (m *Model) Info() belay.ModelInfo { return m.info() }
