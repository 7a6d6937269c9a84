import { useState } from 'react';
import { Autocomplete, Input, Menu, MenuItem, SearchField, useFilter } from 'react-aria-components';
import { useLocation } from 'wouter';
import { query } from '../api/client';
import css from './Finder.module.css';
import { SCREENS } from './screens';
import { useMay } from './session';

interface Target {
  id: string;
  label: string;
  hint: string;
}

const EVENT_ID = /^evt_[0-9a-f]{32}$/;

/** Finds screens, models and claims by name, and any call or claim by its id. */
export default function Finder({ onClose }: { onClose: () => void }) {
  const [, go] = useLocation();
  const [text, setText] = useState('');
  const { contains } = useFilter({ sensitivity: 'base' });
  const may = useMay();
  const claims = query.useQuery(
    'get',
    '/api/v1/claims',
    { params: { query: { limit: 50 } } },
    { staleTime: 60_000 },
  );
  const models = query.useQuery(
    'get',
    '/api/v1/usage/summary',
    { params: { query: { group_by: 'model' } } },
    { staleTime: 60_000 },
  );
  const trimmed = text.trim();
  const targets: Target[] = [
    ...(EVENT_ID.test(trimmed) ? [{ id: `/events/${trimmed}`, label: trimmed, hint: 'call' }] : []),
    ...SCREENS.filter((screen) => screen.name && (!screen.scope || may({ scope: screen.scope }))).map(
      (screen) => ({
        id: screen.path,
        label: screen.name ?? '',
        hint: 'screen',
      }),
    ),
    ...(claims.data?.claims ?? []).map((claim) => ({
      id: `/claims/${claim.id}`,
      label: `${claim.provider} ${claim.period_start} ${claim.id}`,
      hint: 'claim',
    })),
    ...(models.data?.breakdown ?? []).map((item) => ({
      id: `/events?model=${encodeURIComponent(item.key)}`,
      label: item.key,
      hint: 'model',
    })),
  ];
  return (
    <Autocomplete filter={contains} inputValue={text} onInputChange={setText}>
      <SearchField aria-label="Find" autoFocus className={css.field}>
        <Input className={css.input} placeholder="Screen, model, claim, or the id of a call" />
      </SearchField>
      <Menu
        className={css.list}
        items={targets}
        aria-label="Results"
        renderEmptyState={() => <p className={css.none}>Nothing has this name.</p>}
        onAction={(key) => {
          onClose();
          go(String(key));
        }}
      >
        {(target) => (
          <MenuItem id={target.id} textValue={target.label} className={css.item}>
            <span>{target.label}</span>
            <span className={css.hint}>{target.hint}</span>
          </MenuItem>
        )}
      </Menu>
    </Autocomplete>
  );
}
