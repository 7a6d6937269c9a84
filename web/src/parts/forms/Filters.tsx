import { PROVIDER_OPTIONS } from '../../app/providers';
import { Button } from './Button';
import { type Option, Select } from './Fields';

/** A filter by one of these values; `''` filters by none and is shown as "All". */
export function FilterSelect<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T | '';
  options: readonly Option<T>[];
  onChange: (value: T | '') => void;
}) {
  return (
    <Select
      label={label}
      value={value}
      onChange={onChange}
      options={[{ value: '', label: 'All' }, ...options]}
    />
  );
}

/** A filter by a provider; `''` filters by none. */
export function ProviderFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <FilterSelect<string> label="Provider" value={value} options={PROVIDER_OPTIONS} onChange={onChange} />
  );
}

export function ClearFilters({ onPress }: { onPress: () => void }) {
  return (
    <Button kind="quiet" onPress={onPress}>
      Clear filters
    </Button>
  );
}

/** Options whose values are the names of these words. */
export const optionsOf = <T extends string>(
  words: Readonly<Record<T, string | { label: string }>>,
): Option<T>[] =>
  (Object.entries(words) as [T, string | { label: string }][]).map(([value, word]) => ({
    value,
    label: typeof word === 'string' ? word : word.label,
  }));
