import type { ReactNode } from 'react';
import { Checkbox as AriaCheckbox, CheckboxGroup, type CheckboxProps, Label } from 'react-aria-components';
import css from './Checkboxes.module.css';
import type { Option } from './Fields';

/** One thing that is so or not. */
export function Checkbox({ children, ...props }: Omit<CheckboxProps, 'children'> & { children: ReactNode }) {
  return (
    <AriaCheckbox {...props} className={css.checkbox}>
      <span className={css.box} aria-hidden="true">
        ✓
      </span>
      {children}
    </AriaCheckbox>
  );
}

/** Any of a few values. */
export function Checkboxes<T extends string>({
  label,
  value,
  options,
  onChange,
  error,
}: {
  label: string;
  value: readonly T[];
  options: readonly Option<T>[];
  /** The chosen values in the order of the options. */
  onChange: (value: T[]) => void;
  error?: string | undefined;
}) {
  return (
    <CheckboxGroup
      className={css.group}
      value={[...value]}
      isInvalid={error !== undefined}
      onChange={(chosen) =>
        onChange(options.map((option) => option.value).filter((one) => chosen.includes(one)))
      }
    >
      <Label className={css.label}>{label}</Label>
      {options.map((option) => (
        <Checkbox key={option.value} value={option.value}>
          {option.label}
        </Checkbox>
      ))}
      {error && <span className={css.error}>{error}</span>}
    </CheckboxGroup>
  );
}
