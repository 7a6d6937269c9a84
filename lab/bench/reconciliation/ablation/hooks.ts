/**
 * Module hooks that load the reconciliation domain again with one change of its text. The product has no switch for it: a
 * module that is imported with the query `?ablation=…` loads its own imports below domain/reconciliation with the same
 * query, and the text of the changed file is edited on loading. Runs in the thread of Node's hooks.
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

/** The address of a module with an edit. */
export function withEdit(url: URL, edit: Edit): URL {
  const changed = new URL(url);
  changed.searchParams.set(QUERY, JSON.stringify(edit));
  return changed;
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const found = await next(specifier, context);
  const edit = editOf(context.parentURL);
  if (edit === null || !found.url.includes(FOLDER)) return found;
  const url = new URL(found.url);
  url.searchParams.set(QUERY, edit);
  return { ...found, url: url.href };
};

export const load: LoadHook = async (url, context, next) => {
  const loaded = await next(url, context);
  const text = editOf(url);
  if (text === null) return loaded;
  const { file, find, replace } = JSON.parse(text) as Edit;
  if (!new URL(url).pathname.endsWith(file)) return loaded;
  const source = String(loaded.source);
  const meant = new RegExp(find, 'm');
  if (!meant.test(source)) throw new Error(`${file} lacks the text to change: ${find}`);
  return { ...loaded, source: source.replace(meant, replace) };
};

function editOf(url: string | undefined): string | null {
  return url?.startsWith('file:') ? new URL(url).searchParams.get(QUERY) : null;
}
