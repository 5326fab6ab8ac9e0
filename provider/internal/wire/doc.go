// Package wire holds the code that the providers of this repository share. It builds and
// sends request bodies, reads answers and limits their length, turns failures into a
// [belay.ModelError], and finds the window and the price of a model.
//
// Code for one vendor belongs in the package of that vendor. In this package, "answer" means
// an HTTP response, and "response" means the output of the model.
package wire
