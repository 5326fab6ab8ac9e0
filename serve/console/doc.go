// Package console is the web console of "belay serve": an inbox of approvals, conversations,
// the waterfall of a turn, the graph of the hooks, runs, jobs and usage.
//
// Experimental: only package serve needs it, and its options follow the pages.
//
// # Usage
//
// Package serve mounts the console beside its API:
//
//	mux.Handle("/", console.New(api, &console.Options{Key: key}))
//
// The console reads and writes through the API only, with package client, so it can do what
// the token of its user may do. The requests stay in the process.
//
// Pages are HTML that the server renders. Reading needs no JavaScript. Deciding, sending and
// live updates need it: console.js and the library htmx, which are part of the binary. No page
// loads anything from another server.
//
// # Concurrency
//
// A handler serves many requests at once.
//
// # Errors
//
// An error of the API becomes a page that says what to do, with the status of the API.
//
// # Testing
//
// The tests open the console of a real server in a real Chromium.
package console

// The pages are templates in *.templ files. `make generate` makes Go from them.
