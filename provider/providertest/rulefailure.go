package providertest

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// failureRules check attempts that fail.
var failureRules = []rule{
	{"429 without Retry-After is rate limited", func(s *scene) {
		s.user("hello")
		e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelRateLimited}}, belay.ModelRateLimited)
		s.wantEqual("the status", e.Status, http.StatusTooManyRequests)
		s.wantEqual("the time to wait", e.RetryAfter, time.Duration(0))
	}},
	{"429 with seconds says how long to wait", func(s *scene) {
		s.user("hello")
		e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelRateLimited, RetryAfter: "7"}}, belay.ModelRateLimited)
		s.wantEqual("the time to wait", e.RetryAfter, 7*time.Second)
	}},
	{"429 with a date says how long to wait", func(s *scene) {
		s.user("hello")
		date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
		e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelRateLimited, RetryAfter: date}}, belay.ModelRateLimited)
		if e.RetryAfter < 59*time.Minute || e.RetryAfter > time.Hour {
			s.Errorf("the time to wait: got %v, want about an hour", e.RetryAfter)
		}
	}},
	{"429 with a past date or an invalid value does not wait", func(s *scene) {
		s.user("hello")
		for _, after := range []string{time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), "soon", "-5", "NaN"} {
			e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelRateLimited, RetryAfter: after}}, belay.ModelRateLimited)
			s.wantEqual("the time to wait after "+after, e.RetryAfter, time.Duration(0))
		}
	}},
	{"an overloaded service is reported as overloaded", func(s *scene) {
		s.user("hello")
		e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelOverloaded, RetryAfter: "3"}}, belay.ModelOverloaded)
		s.wantEqual("the time to wait", e.RetryAfter, 3*time.Second)
		e = s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelOverloaded, Status: 529, Message: "come back later"}}, belay.ModelOverloaded)
		s.wantEqual("the status", e.Status, 529)
	}},
	{"500, 502 and 503 are failures of the server", func(s *scene) {
		s.user("hello")
		for _, status := range []int{500, 502, 503} {
			e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelServer, Status: status}}, belay.ModelServer)
			s.wantEqual("the status", e.Status, status)
		}
	}},
	{"401 and 403 are failures of authentication", func(s *scene) {
		s.user("hello")
		for _, status := range []int{401, 403} {
			e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelAuth, Status: status}}, belay.ModelAuth)
			s.wantEqual("the status", e.Status, status)
		}
	}},
	{"a request that does not fit the window is too long", func(s *scene) {
		s.user("hello")
		s.fails(Reply{Refusal: &Refusal{Kind: belay.ModelTooLong}}, belay.ModelTooLong)
		s.fails(Reply{Refusal: &Refusal{Kind: belay.ModelTooLong, Status: http.StatusRequestEntityTooLarge, Message: "the body is too large"}}, belay.ModelTooLong)
	}},
	{"400 and 404 are invalid", func(s *scene) {
		s.user("hello")
		for _, status := range []int{400, 404} {
			e := s.fail(Reply{Refusal: &Refusal{Kind: belay.ModelInvalid, Status: status, Message: "there is a mistake"}}, belay.ModelInvalid)
			s.wantEqual("the status", e.Status, status)
			if !strings.Contains(e.Error(), "there is a mistake") {
				s.Errorf("the error does not quote the service: %v", e)
			}
		}
	}},
	{"a failed attempt is not retried", func(s *scene) {
		s.user("hello")
		for i, kind := range []belay.ModelErrorKind{belay.ModelRateLimited, belay.ModelOverloaded, belay.ModelServer, belay.ModelNetwork} {
			s.fails(Reply{Refusal: &Refusal{Kind: kind}}, kind)
			s.wantEqual("the number of requests", len(s.server.Requests()), i+1)
		}
	}},
	{"the key is in no error", func(s *scene) {
		s.user("hello")
		said := "the key " + s.server.Key() + " is not known"
		for _, kind := range []belay.ModelErrorKind{belay.ModelAuth, belay.ModelInvalid, belay.ModelServer} {
			if e := s.fail(Reply{Refusal: &Refusal{Kind: kind, Message: said}}, kind); strings.Contains(e.Error(), s.server.Key()) {
				s.Errorf("the key is in the error: %v", e)
			}
		}
	}},
	{"no answer is a failure of the network", func(s *scene) {
		s.user("hello")
		s.fails(Reply{Refusal: &Refusal{Kind: belay.ModelNetwork}}, belay.ModelNetwork)
	}},
	{"if nothing listens at a local address, the error names it and is not retryable", func(s *scene) {
		s.user("hello")
		s.server.Close()
		e := s.fail(Reply{}, belay.ModelInvalid)
		at, err := url.Parse(s.server.URL())
		if err != nil {
			s.Fatalf("the address of the server: %v", err)
		}
		if want := "listens at " + at.Host; !strings.Contains(e.Error(), want) {
			s.Errorf("the error does not say %q: %v", want, e)
		}
	}},
	{"a web page in place of a response is reported with its type and not retried", func(s *scene) {
		s.user("hello")
		e := s.fail(Reply{Page: "<html>log in</html>"}, belay.ModelInvalid)
		s.wantEqual("the status", e.Status, http.StatusOK)
		if !strings.Contains(e.Error(), "answered text/html") {
			s.Errorf("the error does not say what the server sent: %v", e)
		}
	}},
}
