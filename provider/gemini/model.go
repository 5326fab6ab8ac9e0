package gemini

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unique"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// Adaptive as Options.Thinking lets the model decide how much it thinks.
const Adaptive = -1

// defaultURL is where the service is.
const defaultURL = "https://generativelanguage.googleapis.com"

// Options are the settings of a model.
type Options struct {
	// Key is what the service is paid with. Defaults to the environment variable
	// GOOGLE_API_KEY, or else GEMINI_API_KEY.
	Key string
	// URL is where the service is, without /v1beta. Defaults to
	// https://generativelanguage.googleapis.com.
	URL string
	// HTTPClient sends the requests. Defaults to http.DefaultClient.
	HTTPClient *http.Client
	// MaxTokens bounds the response, thinking included, to a request that sets no
	// bound. Defaults to the model's longest output.
	MaxTokens int
	// Thinking is how many tokens of a response may be thinking, or [Adaptive],
	// and makes the model tell what it thinks. Where a bound on the response
	// leaves less room, it thinks less. Defaults to what the model does by itself,
	// and that is not told.
	Thinking int
	// Window is how many tokens a request and its response may take. Defaults to
	// the built-in table.
	Window int
	// Price is what tokens cost. Defaults to the built-in table.
	Price belay.Price
}

// Model is a Gemini model. [New] makes one.
type Model struct {
	name     string
	newer    bool // Gemini 3 or later
	thinking int
	maxOut   int
	timeout  time.Duration // of an attempt; 0 is none
	client   *sdk.Client
	failures wire.Failures
	broken   error // why no request can be sent
	info     func() belay.ModelInfo
	heads    wire.Heads
	// as is the key under which messages keep their encoding, and encoder what
	// encodes them: made once, and quick to compare, since each old message is
	// asked for with them.
	as      any
	encoder func(*belay.Message) (any, error)
}

var _ belay.InfoModel = (*Model)(nil)

// New makes a model of its name in the API, such as gemini-3-flash-preview. It
// sends nothing: a key that is missing or wrong shows when the first request
// fails.
func New(model string, opts *Options) *Model {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Key = cmp.Or(o.Key, os.Getenv("GOOGLE_API_KEY"), os.Getenv("GEMINI_API_KEY"))
	o.URL = cmp.Or(o.URL, defaultURL)
	client := wire.Client(o.HTTPClient)
	m := &Model{
		name: model, newer: isNewer(model), thinking: o.Thinking, maxOut: o.MaxTokens,
		timeout: client.Timeout, failures: wire.NewFailures(provider+"/"+model, o.Key),
		info: sync.OnceValue(func() belay.ModelInfo { return describe(model, &o) }),
	}
	m.as, m.encoder = unique.Make(encoding{model}), m.encode
	m.broken = wire.NoKey("GEMINI_API_KEY")
	if o.Key != "" {
		m.client, m.broken = connect(&o, client)
	}
	return m
}

// connect makes the client of the SDK. It tries nothing again, since the loop
// does, and follows no redirects, since the key would go along.
func connect(o *Options, client *http.Client) (*sdk.Client, error) {
	if _, err := wire.ParseURL(o.URL, "https://host"); err != nil {
		return nil, err
	}
	client.Transport = &transport{base: cmp.Or(client.Transport, http.DefaultTransport)}
	client.Timeout = 0 // Stream sees to it: the client would stop its clock when the SDK is done
	c, err := sdk.NewClient(context.Background(), &sdk.ClientConfig{
		APIKey: o.Key, Backend: sdk.BackendGeminiAPI, HTTPClient: client,
		HTTPOptions: sdk.HTTPOptions{BaseURL: o.URL, APIVersion: "v1beta"},
	})
	if err != nil {
		// Its text would show the key.
		return nil, errors.New("the SDK takes neither these options nor what it finds in the environment")
	}
	return c, nil
}

// isNewer reports whether a model is of Gemini 3 or later. Those want signatures
// on calls and take images within results. Names that say nothing, such as
// gemini-flash-latest, are of new models.
func isNewer(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	for _, old := range []string{"gemini-1.", "gemini-2.", "gemini-pro-vision", "gemma-", "learnlm-"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}

// Info tells the model's name, window, longest output and price.
func (m *Model) Info() belay.ModelInfo { return m.info() }
