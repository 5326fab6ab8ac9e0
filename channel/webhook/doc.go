// Package webhook sends approvals to an address, as signed requests. A program there shows them
// to people. People decide in the console or with the API of "belay serve".
//
// # Usage
//
//	ch, err := webhook.New(&webhook.Options{URL: "https://pager.example.com/belay", Secret: secret})
//	...
//	runner, err := channel.New("pager", ch, store, &channel.Options{Dir: dir, Link: link})
//
// The body of a request is a [Call]. Its signature is that of declared hooks: see [declare.Sign].
//
// # Concurrency
//
// A Channel is safe for concurrent use.
//
// # Errors
//
// A status other than 2xx is an error. With 429 and 503 the header Retry-After is honoured, and
// the error is a [channel.RetryError].
//
// # Testing
//
// Set Options.URL to the address of a server in your test.
package webhook
