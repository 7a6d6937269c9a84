import { useState } from 'react';
import type { ReviewItem } from './words';

interface Chosen {
  item: ReviewItem;
  at: number;
  filter: string;
}

/**
 * The item that the person looks at. The list changes while other people decide, so the choice is by id: an item that
 * another person has decided stays on the screen until the person moves on, and a key never decides on a neighbour.
 */
export function useChosenItem(items: readonly ReviewItem[], filter: string, isOwn: (id: string) => boolean) {
  const [chosen, setChosen] = useState<Chosen>();
  const held = chosen?.filter === filter && !isOwn(chosen.item.id) ? chosen.item : undefined;
  const before = chosen?.filter === filter ? chosen.at : 0;
  const found = held ? items.findIndex(({ id }) => id === held.id) : -1;
  const at = found >= 0 ? found : Math.max(0, Math.min(before, items.length - 1));
  const choose = (next: number) => {
    const item = items[next];
    if (item) setChosen({ item, at: next, filter });
  };
  const isGone = held !== undefined && found < 0;
  return { item: isGone ? held : items[at], at, isGone, choose };
}
