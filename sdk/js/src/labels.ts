import { type AsyncStorage, platform } from './platform.js';

/** Labels of a call: whose it is and what it is for. Rules have scopes of team and feature, and count by session. */
export interface Labels {
  team?: string | undefined;
  feature?: string | undefined;
  session?: string | undefined;
  user?: string | undefined;
  /** The project, where it is not the key's workspace. */
  project?: string | undefined;
  environment?: string | undefined;
}

/** The option of one call; removed before the provider sees the request. */
export const OPTION = 'trueup';
/** The same for typed code: a symbol is never serialized, and survives the copies that clients make. */
const LABELS = Symbol.for('trueup.labels');
/** One storage for all copies of this package in a process. */
const STORAGE = Symbol.for('trueup.storage');

type WithLabels = Record<string | symbol, unknown>;

function storage(): AsyncStorage<Labels> | undefined {
  const place = globalThis as unknown as Record<symbol, AsyncStorage<Labels> | undefined>;
  place[STORAGE] ??= platform().createStorage<Labels>();
  return place[STORAGE];
}

/**
 * Labels every call that `work` makes, also after awaits. Inner labels add to outer ones. Where the runtime
 * has no async context, `work` runs without labels.
 */
export function withLabels<R>(labels: Labels, work: () => R): R {
  const store = storage();
  return store === undefined ? work() : store.run({ ...store.getStore(), ...labels }, work);
}

/** Labels one call: `client.chat.completions.create(labeled({ team: 'growth' }, { model, messages }))`. */
export function labeled<T extends object>(labels: Labels, params: T): T {
  return { ...params, [LABELS]: { ...((params as WithLabels)[LABELS] as Labels | undefined), ...labels } };
}

/** The labels of all, of which the last that has a label counts. */
export function mergeLabels(...all: readonly (Labels | undefined)[]): Labels {
  const merged: Record<string, string> = {};
  for (const labels of all) {
    if (labels === undefined) continue;
    for (const name in labels) {
      const value = labels[name as keyof Labels];
      if (value !== undefined && value !== null) merged[name] = String(value);
    }
  }
  return merged;
}

/** The labels of the async context. */
export function contextLabels(): Labels | undefined {
  return storage()?.getStore();
}

/** The labels of one call's parameters or options. */
export function ownLabels(params: unknown): Labels | undefined {
  if (typeof params !== 'object' || params === null) return undefined;
  const given = params as WithLabels;
  const option = given[OPTION];
  const marked = given[LABELS] as Labels | undefined;
  if (typeof option !== 'object' || option === null) return marked;
  return { ...marked, ...(option as Labels) };
}

/** The parameters without the option; the same object where they have none. */
export function withoutOption<T>(params: T): T {
  if (typeof params !== 'object' || params === null || !(OPTION in params)) return params;
  const { [OPTION]: _, ...rest } = params as Record<string | symbol, unknown>;
  return rest as T;
}
