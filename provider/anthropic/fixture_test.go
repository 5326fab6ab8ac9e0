package anthropic_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/providertest"
)

var (
	message = wiretest.Message
	user    = wiretest.User
	said    = wiretest.Said
	ask     = wiretest.Ask
	answer  = wiretest.Answer
)

func wantFailure(t testing.TB, err error, kind belay.ModelErrorKind, phrase string) {
	t.Helper()
	_ = wiretest.WantFailure(t, err, kind, phrase) // the test needs only the check
}

// wild returns a model whose server sends the same answer to every request.
func wild(t *testing.T, status int, contentType, body string) belay.Model {
	t.Helper()
	return anthropic.New("m", &anthropic.Options{Key: "key-of-a-test", URL: wiretest.Serve(t, status, contentType, body)})
}

func openAt(client *http.Client) wiretest.Lister {
	return anthropic.New("m", &anthropic.Options{Key: "k", URL: "http://localhost", HTTPClient: client})
}

func TestAnAnswerThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	wiretest.AnswersAreLimited(t, openAt)
}

func TestARefusalThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	wiretest.RefusalsAreLimited(t, openAt)
}

func TestTheKeyDoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	wiretest.RedirectsAreNotFollowed(t, func(url string) belay.Model {
		return anthropic.New("m", &anthropic.Options{Key: "key-of-a-test", URL: url})
	})
}

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	wiretest.ModelsAreListed(t, providertest.NewAnthropic(t, nil), func(url, key string) wiretest.Lister {
		return anthropic.New("m", &anthropic.Options{URL: url, Key: key})
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()
	wiretest.KnownModelsHaveAPrice(t, anthropic.Known(), func(name string) belay.ModelInfo { return anthropic.New(name, nil).Info() })
}

func TestAModelDoesNotShowItsKey(t *testing.T) {
	t.Parallel()
	wiretest.KeysAreHidden(t, func(url, key string) belay.Model {
		return anthropic.New("m", &anthropic.Options{URL: url, Key: key})
	})
}

func TestAnAnsweredConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	wiretest.ConnectionsAreReused(t, func(client *http.Client) belay.Model {
		return open(server, &anthropic.Options{HTTPClient: client})
	}, func(model belay.Model) { ask(t, server, model, wiretest.Hello()) })
}

func TestOldMessagesAreNotEncodedAgain(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	wiretest.OldMessagesAreEncodedOnce(t, server, func() belay.Model { return open(server, nil) })
}

func TestHeadsAreToldApart(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	wiretest.HeadsAreDistinguished(t, server, open(server, nil), json.RawMessage(`{"type":"object","title":"a"}`))
}
