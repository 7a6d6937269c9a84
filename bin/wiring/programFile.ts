import { fileURLToPath } from 'node:url';
import type { ServerName } from '../../platform/supervision.js';

/** The file of a program in bin, as TypeScript where this one runs so. */
export function programFile(name: ServerName | 'trueup'): string {
  return fileURLToPath(
    new URL(`../${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
  );
}
