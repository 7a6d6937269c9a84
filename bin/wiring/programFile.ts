import { fileURLToPath } from 'node:url';

/** The file of a program in bin, as TypeScript where this one runs so. */
export function programFile(name: 'api' | 'worker' | 'trueup'): string {
  return fileURLToPath(
    new URL(`../${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
  );
}
