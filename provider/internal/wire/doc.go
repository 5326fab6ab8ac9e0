// Package wire holds the code that the providers of this repository share: how a request
// body is built and sent, how an answer is limited and read, how failures become a
// [belay.ModelError], and where the window and price of a model come from.
//
// It knows no vendor. Code for one vendor belongs in the
// package of that vendor. In this package an answer is an HTTP response, and a response
// is what the model said.
package wire
