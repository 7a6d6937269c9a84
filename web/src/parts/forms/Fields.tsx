import type { ReactNode } from 'react';
import {
  Button as AriaButton,
  Select as AriaSelect,
  TextField as AriaTextField,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  SelectValue,
  Text,
  TextArea,
  type TextFieldProps,
} from 'react-aria-components';
import css from './Fields.module.css';

/** A labelled text input with its help and its error beneath. */
export function TextField({
  label,
  help,
  error,
  lines,
  placeholder,
  ...props
}: Omit<TextFieldProps, 'children'> & {
  label: string;
  help?: ReactNode;
  error?: string | undefined;
  lines?: number;
  placeholder?: string;
}) {
  return (
    // A stored fault of the last request must not keep the browser from sending the next one.
    <AriaTextField
      {...props}
      validationBehavior="aria"
      isInvalid={error !== undefined || props.isInvalid}
      className={css.field}
    >
      <Label className={css.label}>{label}</Label>
      {lines ? (
        <TextArea className={css.input} rows={lines} placeholder={placeholder} />
      ) : (
        <Input className={css.input} placeholder={placeholder} />
      )}
      {help && (
        <Text slot="description" className={css.help}>
          {help}
        </Text>
      )}
      <FieldError className={css.error}>{error}</FieldError>
    </AriaTextField>
  );
}

export interface Option<T extends string> {
  value: T;
  label: string;
}

/** One of a few values. */
export function Select<T extends string>({
  label,
  value,
  options,
  onChange,
  isDisabled,
}: {
  label: string;
  value: T;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
  isDisabled?: boolean;
}) {
  return (
    <AriaSelect
      className={css.field}
      value={value}
      onChange={(key) => onChange(key as T)}
      isDisabled={isDisabled}
    >
      <Label className={css.label}>{label}</Label>
      <AriaButton className={css.input}>
        <SelectValue />
        <span aria-hidden="true">▾</span>
      </AriaButton>
      <Popover className={css.popover}>
        <ListBox className={css.list} items={options}>
          {(option) => (
            <ListBoxItem id={option.value} className={css.item}>
              {option.label}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}

/** A form that sends nothing while its button waits for an answer, or where it has none. */
export function PlainForm({
  className,
  onSubmit,
  children,
}: {
  className: string | undefined;
  onSubmit: () => void;
  children: ReactNode;
}) {
  return (
    <form
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        // Enter in the only field of a form submits it all the same. A button that waits submits nothing (Button.tsx).
        if (event.currentTarget.querySelector('button[type=submit]')) onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** Fields in a column and the buttons that end the form. */
export function Form({
  onSubmit,
  actions,
  children,
}: {
  onSubmit: () => void;
  actions: ReactNode;
  children: ReactNode;
}) {
  return (
    <PlainForm className={css.form} onSubmit={onSubmit}>
      {children}
      <div className={css.actions}>{actions}</div>
    </PlainForm>
  );
}
