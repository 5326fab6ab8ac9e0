package wire_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

func TestModelNames(t *testing.T) {
	t.Parallel()
	f := wire.NewFailures("p/m", "")
	for _, test := range []struct {
		rule, kind, body string
		bare             bool
		want             []string
		failure          belay.ModelErrorKind
	}{
		{"names are sorted", "application/json", `{"data":[{"id":"b"},{"id":"a"}]}`, false, []string{"a", "b"}, ""},
		{"a bare list may count", "application/json", ` [{"id":"a"}]`, true, []string{"a"}, ""},
		{"a bare list may not count", "application/json", `[{"id":"a"}]`, false, nil, belay.ModelServer},
		{"what is not JSON is the server's fault", "application/json", `<html>`, true, nil, belay.ModelServer},
		{"a list that is too long is not cut", "application/json", `{"data":[{"id":"a"}]}` + strings.Repeat(" ", 16<<20), false, nil, belay.ModelServer},
		{"a page is not a list", "text/html", `{"data":[]}`, true, nil, belay.ModelInvalid},
	} {
		names, err := f.ModelNames(t.Context(), answerOf(http.StatusOK, test.kind, strings.NewReader(test.body)), test.bare) //nolint:bodyclose // there is no connection to close
		failure, _ := errors.AsType[*belay.ModelError](err)
		if !slices.Equal(names, test.want) || (err != nil) != (test.failure != "") || failure != nil && failure.Kind != test.failure {
			t.Errorf("%s: got %q, %v, want %q, %s", test.rule, names, err, test.want, test.failure)
		}
	}
}
