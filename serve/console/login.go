package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/belay-run/belay/serve/api"
)

// loginView is what the login page shows.
type loginView struct {
	Problem string
	Next    string // the page to open afterwards
}

// loginQuery returns the query of the login page that leads back to a page.
func loginQuery(next string) string { return url.Values{"next": {next}}.Encode() }

// local returns an address if it is a page of this server, and "/approvals" otherwise.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/approvals"
	}
	return next
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	v := &visit{console: c, w: w, r: r}
	v.show(http.StatusOK, login(loginView{Next: local(r.URL.Query().Get("next"))}))
}

// loggedIn is the answer to console.js.
type loggedIn struct {
	Key  string `json:"key"`
	Next string `json:"next"`
}

// login checks a token and sets the cookie. console.js asks for JSON, to get the acting key.
// Without JavaScript the browser gets the next page, and can only read.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	v := &visit{console: c, w: w, r: r}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	secret, next := strings.TrimSpace(r.PostFormValue("token")), local(r.PostFormValue("next"))
	err := errors.New("Paste a token. `belay token create NAME --role approve` makes one.") //nolint:revive,staticcheck // it is shown as it is
	if api, made := c.client(r, secret); made == nil {
		_, err = api.ReadSelf(r.Context())
	} else if secret != "" {
		err = errors.New("That is not a token: a token begins with belay_.") //nolint:revive,staticcheck // it is shown as it is
	}
	asks := strings.Contains(r.Header.Get("Accept"), "application/json")
	if err != nil {
		status, text := http.StatusUnauthorized, err.Error()
		if p, ok := errors.AsType[*api.Problem](err); ok {
			status, text = p.Status, sentence(p.Detail)
		}
		if asks {
			sendJSON(w, status, api.Problem{Status: status, Detail: text})
			return
		}
		v.show(status, login(loginView{Problem: text, Next: next}))
		return
	}
	cookie := c.seal.cookie(r, secret)
	http.SetCookie(w, cookie)
	if asks {
		sendJSON(w, http.StatusOK, loggedIn{Key: c.seal.actingKey(cookie.Value), Next: next})
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // local returned it
}

func sendJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // the browser has left
}

func logout(w http.ResponseWriter, r *http.Request) {
	forget(w, r)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
