import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

/** One filter that lives in the URL, so that a link shows the same rows. The fallback is not written. */
export function useFilter<T extends string>(name: string, fallback: T): [T, (value: T) => void] {
  const [params, setParams] = useSearchParams();
  const value = (params.get(name) as T | null) ?? fallback;
  const set = useCallback(
    (next: T) =>
      setParams((before) => {
        const after = new URLSearchParams(before);
        if (next === fallback || next === '') after.delete(name);
        else after.set(name, next);
        // Another filter starts the list anew.
        if (name !== 'cursor' && name !== 'offset') {
          after.delete('cursor');
          after.delete('offset');
        }
        return after;
      }),
    [name, fallback, setParams],
  );
  return [value, set];
}

/** Sets several filters of the URL in one step; an empty or absent value removes the filter. */
export function useSetFilters(): (values: Record<string, string | undefined>) => void {
  const [, setParams] = useSearchParams();
  return useCallback(
    (values) =>
      setParams((before) => {
        const after = new URLSearchParams(before);
        after.delete('cursor');
        for (const [name, value] of Object.entries(values)) {
          if (value) after.set(name, value);
          else after.delete(name);
        }
        return after;
      }),
    [setParams],
  );
}

/** The address of this screen's rows with other filters. */
export function withQuery(
  path: string,
  values: Record<string, string | number | boolean | undefined | null>,
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== '') params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}
