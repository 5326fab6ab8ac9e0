package webtool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/belay-run/belay"
)

// A Searcher asks a search engine.
type Searcher interface {
	// Search returns at most count results, the best first. It sends its requests with the
	// client, which checks addresses.
	Search(ctx context.Context, client *http.Client, query string, count int) ([]Found, error)
}

// Found is a result of a search engine.
type Found struct {
	Title, URL, Text string
}

// searchIn is the input of web_search.
type searchIn struct {
	Query string `json:"query" minLength:"1" maxLength:"400" jsonschema:"The words to search for."`
	Count int    `json:"count,omitempty" minimum:"1" maximum:"20" default:"8" jsonschema:"The number of results."`
}

func (e *Extension) search(ctx context.Context, in searchIn) (belay.Result, error) {
	found, err := e.opts.Search.Search(ctx, e.client, in.Query, in.Count)
	if ctx.Err() != nil {
		return belay.Result{}, context.Cause(ctx)
	}
	if err != nil {
		return belay.Failed(belay.ClassUnavailable, fmt.Sprintf("The search engine cannot be asked: %v.", reason(err))), nil
	}
	if len(found) == 0 {
		return belay.Result{Text: "There are no results. Try other words."}, nil
	}
	var b strings.Builder
	for i, f := range found[:min(len(found), in.Count)] {
		fmt.Fprintf(&b, "%d. %s\n   %s\n   %s\n", i+1, oneLine(f.Title, 200), oneLine(f.URL, 2000), oneLine(f.Text, 500))
	}
	return belay.Result{Text: b.String()}, nil
}

// oneLine returns a text without line breaks, and cuts it.
func oneLine(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// SearXNG returns a searcher that asks a SearXNG server. Its settings must allow the format
// json.
func SearXNG(address string) Searcher { //nolint:ireturn // a Searcher is all it is
	return searxng(strings.TrimRight(address, "/"))
}

type searxng string

// Search implements Searcher.
func (s searxng) Search(ctx context.Context, client *http.Client, query string, count int) ([]Found, error) {
	var answer struct {
		Results []struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
		} `json:"results"`
	}
	if err := ask(ctx, client, string(s)+"/search?"+url.Values{"q": {query}, "format": {"json"}}.Encode(), nil, &answer); err != nil {
		return nil, err
	}
	var all []Found
	for _, r := range answer.Results[:min(count, len(answer.Results))] {
		all = append(all, Found{r.Title, r.URL, r.Content})
	}
	return all, nil
}

// Brave returns a searcher that asks the Brave Search API, or a server with the same API at
// another address. An empty address means api.search.brave.com.
func Brave(address, key string) Searcher { //nolint:ireturn // likewise
	if address == "" {
		address = "https://api.search.brave.com"
	}
	return &brave{strings.TrimRight(address, "/"), key}
}

type brave struct{ address, key string }

// Search implements Searcher.
func (s *brave) Search(ctx context.Context, client *http.Client, query string, count int) ([]Found, error) {
	var answer struct {
		Web struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
			} `json:"results"`
		} `json:"web"`
	}
	query = s.address + "/res/v1/web/search?" + url.Values{"q": {query}, "count": {fmt.Sprint(count)}, "text_decorations": {"false"}}.Encode()
	if err := ask(ctx, client, query, map[string]string{"X-Subscription-Token": s.key}, &answer); err != nil {
		return nil, err
	}
	var all []Found
	for _, r := range answer.Web.Results[:min(count, len(answer.Web.Results))] {
		all = append(all, Found{r.Title, r.URL, r.Description})
	}
	return all, nil
}

// ask sends a request, and decodes the JSON of the answer.
func ask(ctx context.Context, client *http.Client, address string, header map[string]string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("the address of the search engine is invalid: %w", err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", userAgent)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		return err //nolint:wrapcheck // search takes its reason out
	}
	defer func() { _ = response.Body.Close() }() // ignore errors: the body was only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 4<<20)).Decode(into); err != nil {
		return fmt.Errorf("its answer is not the expected JSON: %w", err)
	}
	return nil
}
