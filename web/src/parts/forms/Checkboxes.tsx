import type { ReactNode } from 'react';
import { Checkbox as AriaCheckbox, CheckboxGroup, type CheckboxProps, Label } from 'react-aria-components';
import css from './Checkboxes.module.css';
import type { Option } from './Fields';

/** One choice of yes or no. */
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

/** Any number of values. */
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
      <div className={css.columns}>
        {options.map((option) => (
          <Checkbox key={option.value} value={option.value}>
            {option.label}
          </Checkbox>
        ))}
      </div>
      {error && <span className={css.error}>{error}</span>}
    </CheckboxGroup>
  );
}
