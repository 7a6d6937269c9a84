import { describe, expect, it, vi } from 'vitest';
import { REMEMBERED_CHARS_MAX, REMEMBERED_MAX, remember } from '../../domain/remember.js';

describe('a function that remembers', () => {
  it('works each text out once, also where the result is null', () => {
    const find = vi.fn((text: string) => (text === '' ? null : text.length));
    const found = remember(find);
    expect(['a', 'bb', '', 'a', ''].map(found)).toEqual([1, 2, null, 1, null]);
    expect(find).toHaveBeenCalledTimes(3);
  });

  it('holds no more texts than the most, and no long one', () => {
    const find = vi.fn((text: string) => text.length);
    const found = remember(find);
    for (let at = 0; at <= REMEMBERED_MAX; at += 1) found(`text ${at}`);
    found('text 0');
    const long = 'x'.repeat(REMEMBERED_CHARS_MAX + 1);
    found(long);
    found(long);
    expect(find).toHaveBeenCalledTimes(REMEMBERED_MAX + 1 + 1 + 2);
  });
});
