package anthropic

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/belay-run/belay"
)

// Adaptive as Options.Thinking lets the model decide how much it thinks. Newer
// models take nothing else.
const Adaptive = -1

// Options are the settings of a model.
type Options struct {
	// Key is what the service is paid with. Defaults to the environment variable
	// ANTHROPIC_API_KEY.
	Key string
	// URL is where the service is, without /v1/messages. Defaults to
	// https://api.anthropic.com.
	URL string
	// Provider is who serves the model, and tells its thinking from that of others: none
	// takes what another signed. Say anthropic if Anthropic is behind an address of your
	// own. Defaults to anthropic, and with a URL that is not Anthropic's to its host.
	Provider string
	// HTTPClient sends the requests. Defaults to http.DefaultClient.
	HTTPClient *http.Client
	// MaxTokens bounds the response to a request that sets no bound. Defaults to
	// the model's longest output, at most 32,000, or to 8,192 if that is not known.
	MaxTokens int
	// Thinking is how many tokens of a response may be thinking, 1,024 at least,
	// or [Adaptive]. Where a bound on the response leaves less room, it thinks
	// less, or not at all. Defaults to no thinking.
	Thinking int
	// Window is how many tokens a request and its response may take. Defaults to
	// the built-in table.
	Window int
	// Price is what tokens cost. Defaults to the built-in table.
	Price belay.Price
}

// Model is a Claude model. [New] makes one.
type Model struct {
	name     string
	thinking int
	binds    bool // its thinking, to what came before it
	client   sdk.Client
	// scrub takes the key out of a text. It is a closure so that printing a Model
	// does not print the key.
	scrub  func(string) string
	broken error // why no request can be sent
	info   func() belay.ModelInfo
	bound  func() int // of a response, if the request sets none
	heads  atomic.Pointer[[]*head]
	// encoder is the key under which messages keep their encoding, and encode what
	// encodes them: made once, since each old message is asked for with them.
	encoder encoder
	encode  func(*belay.Message) (any, error)
}

var _ belay.InfoModel = (*Model)(nil)

// New makes a model of its name in the API, such as claude-sonnet-4-5. It sends
// nothing: a key that is missing or wrong shows when the first request fails.
func New(model string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Key == "" {
		o.Key = os.Getenv("ANTHROPIC_API_KEY")
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	client := *o.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key would go along
	m := &Model{name: model, thinking: o.Thinking, binds: bindsThinking(model), scrub: scrubber(o.Key), encoder: encoder{unique.Make(cmp.Or(o.Provider, hostOf(o.URL), provider))}}
	m.encode = m.encoder.encode
	settings := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithHTTPClient(&client),
		option.WithMaxRetries(0), // the loop retries
		option.WithMiddleware(boundRefusal),
		option.WithAPIKey(o.Key),
	}
	if m.binds {
		settings = append(settings, option.WithHeader("anthropic-beta", bindingHeader))
	}
	if o.URL != "" {
		m.broken = checkURL(o.URL)
		settings = append(settings, option.WithBaseURL(o.URL))
	}
	if o.Key == "" {
		m.broken = errNoKey
	}
	m.client = sdk.NewClient(settings...)
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

var errNoKey = errors.New("there is no key: set ANTHROPIC_API_KEY or Options.Key")

// officialHost is where Anthropic is.
const officialHost = "api.anthropic.com"

// hostOf returns the host of an address that is not Anthropic's.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != officialHost {
		return u.Host
	}
	return ""
}

// checkURL says what is wrong with the address of the service.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address: there may be a password in it
		}
		return fmt.Errorf("Options.URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("Options.URL: %q is not the address of a web server: write https://host", u.Redacted())
	}
	return nil
}

// scrubber returns a function that takes the key out of a text.
func scrubber(key string) func(string) string {
	return func(text string) string {
		if key == "" {
			return text
		}
		return strings.ReplaceAll(text, key, "[key]")
	}
}

// Info tells the model's name, window, longest output and price.
func (m *Model) Info() belay.ModelInfo { return m.info() }
