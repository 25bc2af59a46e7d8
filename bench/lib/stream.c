/* STREAM's four kernels (copy, scale, add, triad) on arrays of float64, for bench/probes.py.

   stream VALUES ROUNDS: for each round a line with the seconds of each kernel. Written for this
   bench after the description of J. D. McCalpin's STREAM (www.cs.virginia.edu/stream). */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
  if (count != 3) return 2;
  const size_t n = strtoull(words[1], NULL, 10);
  const int rounds = atoi(words[2]);
  double *restrict a = malloc(n * 8), *restrict b = malloc(n * 8), *restrict c = malloc(n * 8);
  if (!a || !b || !c) return 1;
  /* Each thread touches what it will work on, so that its pages lie where it runs. */
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) { a[i] = 1.0; b[i] = 2.0; c[i] = 0.0; }
  for (int round = 0; round < rounds; round++) {
    double t[5];
    t[0] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) c[i] = a[i];
    t[1] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) b[i] = 3.0 * c[i];
    t[2] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
    t[3] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
    t[4] = omp_get_wtime();
    printf("%.9g %.9g %.9g %.9g\n", t[1] - t[0], t[2] - t[1], t[3] - t[2], t[4] - t[3]);
  }
  return 0;
}
