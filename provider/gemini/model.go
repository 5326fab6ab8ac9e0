package gemini

import (
	"cmp"
	"net/http"
	"os"
	"strings"
	"sync"
	"unique"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/provider/internal/wire"
)

// Adaptive is a value of Options.Thinking. It lets the model decide how much it thinks.
const Adaptive = -1

// defaultURL is the address of Google's service.
const defaultURL = "https://generativelanguage.googleapis.com"

// Options are the settings of a model.
type Options struct {
	// Key is the API key. Defaults to the environment variable GOOGLE_API_KEY, or to
	// GEMINI_API_KEY if that is not set.
	Key string
	// URL is the address of the service, without /v1beta. Defaults to
	// https://generativelanguage.googleapis.com.
	URL string
	// HTTPClient sends the requests. Defaults to http.DefaultClient.
	HTTPClient *http.Client
	// MaxTokens limits the response to a request that sets no limit. The limit includes
	// thinking. Defaults to the service's own limit.
	MaxTokens int
	// Thinking is how many tokens of a response may be thinking, or [Adaptive]. If it is
	// set, the response contains the thinking. The model thinks less if the limit on the
	// response is too small. By default the model decides, and the response does not contain
	// its thinking.
	Thinking int
	// Window is how many tokens a request and its response may have together. Defaults to
	// the value in the built-in table.
	Window int
	// Price is the price of tokens. Defaults to the price in the built-in table.
	Price belay.Price
}

// Model is a Gemini model. Call [New] to make one.
type Model struct {
	name     string
	newer    bool // Gemini 3 or later
	thinking int
	maxOut   int
	endpoint *wire.Endpoint
	failures wire.Failures
	broken   error // why the model cannot send requests, or nil
	info     func() belay.ModelInfo
	heads    wire.Heads
	// as is the key of the encodings that messages cache, and encoder encodes messages. They
	// are stored here because every request uses them for every message.
	as      any
	encoder func(*belay.Message) (any, error)
}

var _ belay.InfoModel = (*Model)(nil)

// New returns the model with this name in the API, such as gemini-3-flash-preview. New sends
// nothing. If the key is missing or wrong, the first request fails.
func New(model string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Key = cmp.Or(o.Key, os.Getenv("GOOGLE_API_KEY"), os.Getenv("GEMINI_API_KEY"))
	o.URL = cmp.Or(o.URL, defaultURL)
	m := &Model{
		name: model, newer: isNewer(model), thinking: o.Thinking, maxOut: o.MaxTokens, failures: wire.NewFailures(provider+"/"+model, o.Key),
		info: sync.OnceValue(func() belay.ModelInfo { return describe(model, &o) }),
	}
	m.as, m.encoder = unique.Make(encoding{model}), m.encode
	header := http.Header{}
	header.Set("X-Goog-Api-Key", o.Key)
	switch base, err := wire.ParseURL(o.URL, "https://host"); {
	case o.Key == "":
		m.broken = wire.NoKey("GEMINI_API_KEY")
	case err != nil:
		m.broken = err
	default:
		m.endpoint = wire.NewEndpoint(o.HTTPClient, base.JoinPath("v1beta"), header)
	}
	return m
}

// modelName matches the names of models. A name is part of the URL of a request.
var modelName = lazyregexp.New(`^([a-zA-Z]+/)?[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// path returns the path and the query of a request.
func (m *Model) path() string {
	name := m.name
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	return name + ":streamGenerateContent?alt=sse"
}

// isNewer reports whether a model is Gemini 3 or later. These models require signatures on
// calls and accept images inside results. A name without a version, such as
// gemini-flash-latest, means a new model.
func isNewer(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	for _, old := range []string{"gemini-1.", "gemini-2.", "gemini-pro-vision", "gemma-", "learnlm-"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}

// Info returns the model's name, window, longest output and price.
func (m *Model) Info() belay.ModelInfo { return m.info() }
