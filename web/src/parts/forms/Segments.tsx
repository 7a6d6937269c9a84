import { ToggleButton, ToggleButtonGroup } from 'react-aria-components';
import type { Option } from './Fields';
import css from './Segments.module.css';

/** Two to five values beside each other, one of them chosen. */
export function Segments<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (Option<T> & { /** For screen readers, where the label is short. */ name?: string })[];
  onChange: (value: T) => void;
}) {
  return (
    <ToggleButtonGroup
      aria-label={label}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[value]}
      className={css.group}
      onSelectionChange={(keys) => {
        const [next] = [...keys];
        if (next !== undefined) onChange(next as T);
      }}
    >
      {options.map((option) => (
        <ToggleButton
          key={option.value}
          id={option.value}
          className={css.segment}
          {...(option.name ? { 'aria-label': option.name } : {})}
        >
          {option.label}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}
