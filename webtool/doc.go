// Package webtool has tools that read the web: web_fetch reads a page as Markdown, and
// web_search asks a search engine.
//
// # Usage
//
//	agent, err := belay.New(model, &belay.Options{
//		Extensions: []belay.Extension{webtool.New(&webtool.Options{Search: webtool.SearXNG("https://search.example.com")})},
//		Authorizer: floor,
//	})
//
// # Who may fetch what
//
// The tools need an authorizer, such as package permit: a text that the agent has read may
// ask it to send secrets to an address. web_fetch follows no redirect to another scheme,
// host or path. It returns such a redirect to the model, which must call the tool again, so
// that the authorizer sees every address. By default, a host name must resolve to a public
// address.
//
// # Concurrency
//
// An Extension is safe for concurrent use.
//
// # Errors
//
// A page that cannot be read is a failed result, which says why.
//
// # Testing
//
// Use a server of package net/http/httptest. Its address is a literal, so the tools connect to
// it.
package webtool
