package providertest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// Live is a real service that TestRecordings can record.
type Live struct {
	// URL is the address of the service, as the provider's option needs it.
	URL string
	// KeyVariable is the environment variable with the key.
	KeyVariable string
}

// recordVariable is the environment variable that turns recording on.
const recordVariable = "BELAY_RECORD"

// TestRecordings replays short conversations that were recorded with a real service. Each is
// a subtest. The recordings are the files in dir, named after the conversations. The
// provider must return the recorded outcomes.
//
// If the environment variable BELAY_RECORD is set, TestRecordings talks to the real service
// and writes the files. The owner of the key pays for the requests. The files contain no
// keys, and only the headers that are needed to read a body.
//
// open returns a model for an address and a key. The address differs in each run. The model
// must be the same.
//
//nolint:tparallel // whether they run beside other tests is the caller's choice
func TestRecordings(t *testing.T, dir string, service Live, open func(t testing.TB, address, key string) belay.Model) {
	t.Helper()
	if os.Getenv(recordVariable) != "" {
		key := os.Getenv(service.KeyVariable)
		if key == "" {
			t.Fatalf("recording needs a key: set %s", service.KeyVariable)
		}
		for _, take := range takes {
			t.Run(take.name, func(t *testing.T) { record(t, dir, take, service.URL, key, open) })
		}
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("there are no recordings in %s: to make some, set %s=1 and a key in %s", dir, recordVariable, service.KeyVariable)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			replay(t, file, open)
		})
	}
}

// recording is the content of a file.
type recording struct {
	Conversation string    `json:"conversation"`
	Recorded     time.Time `json:"recorded"`
	// Prefix is the path in the address of the service.
	Prefix    string     `json:"prefix,omitempty"`
	Exchanges []exchange `json:"exchanges"`
	// Outcomes are the results that the provider returned.
	Outcomes []recordedOutcome `json:"outcomes"`
}

// exchange is a request and its answer.
type exchange struct {
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Request json.RawMessage `json:"request"`
	Status  int             `json:"status"`
	// ContentType and RetryAfter are headers of the answer.
	ContentType string `json:"content_type,omitempty"`
	RetryAfter  string `json:"retry_after,omitempty"`
	Answer      string `json:"answer"`
}

// recordedOutcome is a response, or the kind and the status of an error.
type recordedOutcome struct {
	Parts      []belay.Part         `json:"parts,omitempty"`
	StopReason belay.StopReason     `json:"stop_reason,omitempty"`
	Usage      belay.Usage          `json:"usage,omitzero"`
	Model      string               `json:"model,omitempty"`
	Failure    belay.ModelErrorKind `json:"failure,omitempty"`
	Status     int                  `json:"status,omitempty"`
}

// record records a conversation with a service and writes the file.
func record(t testing.TB, dir string, take take, service, key string, open func(t testing.TB, address, key string) belay.Model) {
	t.Helper()
	base, err := url.Parse(service)
	if err != nil {
		t.Fatalf("the address of the service: %v", err)
	}
	tap := newTap(t, base)
	given := key
	if take.wrongKey {
		given = wrongKey
	}
	outcomes := take.run(t, open(t, tap.URL+base.Path, given))
	if t.Failed() {
		return
	}
	r := recording{take.name, time.Now().UTC().Truncate(time.Second), base.Path, tap.exchanges(), outcomes}
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	scrubbed := scrub(data.String(), key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, take.name+".json"), []byte(scrubbed), 0o644); err != nil { //nolint:gosec // the caller names the directory
		t.Fatal(err)
	}
}

// looksLikeKey matches keys and parts of keys. Services quote them in errors.
var looksLikeKey = lazyregexp.New(`\b((sk-|sk_|AIza|ya29\.|xai-|gsk_)[A-Za-z0-9*_.-]{4,}|(org-|proj_|user-)[A-Za-z0-9]{16,})`)

// scrub removes the key, and everything that looks like a key, from a text.
func scrub(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	return looksLikeKey.ReplaceAllString(text, "[key]")
}

// replay replays a recorded conversation.
func replay(t testing.TB, file string, open func(t testing.TB, address, key string) belay.Model) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%s is not a recording: %v", file, err)
	}
	var played *take
	for i := range takes {
		if takes[i].name == r.Conversation {
			played = &takes[i]
		}
	}
	if played == nil {
		t.Fatalf("%s: the conversation %q no longer exists: delete the file", file, r.Conversation)
	}
	outcomes := played.run(t, open(t, newPlayer(t, file, &r).URL+r.Prefix, testKey))
	if got, want := shownOutcomes(t, outcomes), shownOutcomes(t, r.Outcomes); got != want {
		t.Errorf("%s: the provider returns other outcomes for the same answers: got\n%s\nwant\n%s", file, got, want)
	}
}

// shownOutcomes returns outcomes as a text, to compare them.
func shownOutcomes(t testing.TB, outcomes []recordedOutcome) string {
	t.Helper()
	data, err := json.MarshalIndent(outcomes, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var plain []recordedOutcome // decode again, so that new and recorded values have the same form
	if err := json.Unmarshal([]byte(scrub(string(data), "")), &plain); err != nil {
		t.Fatal(err)
	}
	if data, err = json.MarshalIndent(plain, "", "  "); err != nil {
		t.Fatal(err)
	}
	return string(data)
}
