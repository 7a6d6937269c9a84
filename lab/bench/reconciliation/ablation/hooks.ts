/**
 * Module hooks that load the reconciliation domain again with changes of its text. The product has no switch for it: a
 * module that is imported with the query `?ablation=…` loads its own imports below domain/reconciliation with the same
 * query, and the text of the changed files is edited on loading. Runs in the thread of Node's hooks.
 */
import type { LoadHook, ResolveHook } from 'node:module';

/** One change: what the regular expression `find` matches is replaced in the file whose path ends with `file`. */
export interface Edit {
  file: string;
  find: string;
  replace: string;
}

const QUERY = 'ablation';
const FOLDER = '/domain/reconciliation/';

/** The address of a module with these edits. */
export function withEdits(url: URL, edits: readonly Edit[]): URL {
  const changed = new URL(url);
  changed.searchParams.set(QUERY, JSON.stringify(edits));
  return changed;
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const found = await next(specifier, context);
  const edits = editsOf(context.parentURL);
  if (edits === null || !found.url.includes(FOLDER)) return found;
  const url = new URL(found.url);
  url.searchParams.set(QUERY, edits);
  return { ...found, url: url.href };
};

export const load: LoadHook = async (url, context, next) => {
  const loaded = await next(url, context);
  const edits = editsOf(url);
  if (edits === null) return loaded;
  const { pathname } = new URL(url);
  const meant = (JSON.parse(edits) as Edit[]).filter((one) => pathname.endsWith(one.file));
  if (meant.length === 0) return loaded;
  return { ...loaded, source: meant.reduce(edited, String(loaded.source)) };
};

function edited(source: string, { file, find, replace }: Edit): string {
  const meant = new RegExp(find, 'm');
  if (!meant.test(source)) throw new Error(`${file} lacks the text to change: ${find}`);
  return source.replace(meant, replace);
}

function editsOf(url: string | undefined): string | null {
  return url?.startsWith('file:') ? new URL(url).searchParams.get(QUERY) : null;
}
