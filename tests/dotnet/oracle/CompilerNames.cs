// SPDX-License-Identifier: MIT
// Says of each method of some assemblies what C# code it comes from, by what metadata and IL say:
// the attributes AsyncStateMachine, IteratorStateMachine and AsyncIteratorStateMachine name the
// method that a state machine belongs to, IL shows which method uses a lambda or a local function,
// and the tables of properties and events name accessors. Names of methods are not taken apart.
// Usage: oracle names FILE...
// Prints for each method a line: MADE(0|1), the runtime's full name, what is expected.
// "=TEXT": exactly this. "$TEXT": this at the end. "?": nothing is known.
using System;
using System.Collections.Generic;
using System.Collections.Immutable;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;

namespace Oracle
{
    internal sealed class CompilerNames
    {
        private static readonly Dictionary<int, OperandType> Operands = typeof(OpCodes).GetFields(BindingFlags.Public | BindingFlags.Static)
            .Select(field => (OpCode)field.GetValue(null)).ToDictionary(code => (int)(ushort)code.Value, code => code.OperandType);

        private readonly PEReader image;
        private readonly MetadataReader reader;
        private readonly RuntimeText text;
        private readonly Dictionary<MethodDefinitionHandle, string> accessors = new();
        private readonly Dictionary<TypeDefinitionHandle, (MethodDefinitionHandle Method, string Word)> machines = new();
        private readonly Dictionary<string, TypeDefinitionHandle> typesByName = new();
        private readonly Dictionary<(TypeDefinitionHandle, string), MethodDefinitionHandle> made = new();
        private readonly Dictionary<MethodDefinitionHandle, HashSet<MethodDefinitionHandle>> users = new();

        private CompilerNames(PEReader image)
        {
            this.image = image;
            reader = image.GetMetadataReader();
            text = new RuntimeText(reader);
        }

        public static int Print(string[] files)
        {
            using TextWriter output = new StreamWriter(Console.OpenStandardOutput()) { NewLine = "\n" };
            foreach (string file in files)
            {
                using var image = new PEReader(new MemoryStream(File.ReadAllBytes(file)));
                if (image.HasMetadata && image.GetMetadataReader().IsAssembly)
                    new CompilerNames(image).Print(output);
            }
            return 0;
        }

        private void Print(TextWriter output)
        {
            foreach (TypeDefinitionHandle type in reader.TypeDefinitions)
                typesByName[FullName(type)] = type;
            foreach (TypeDefinitionHandle type in reader.TypeDefinitions)
                ReadType(type);
            foreach (MethodDefinitionHandle method in reader.MethodDefinitions)
                ReadBody(method);
            string assembly = reader.GetString(reader.GetAssemblyDefinition().Name);
            foreach (MethodDefinitionHandle handle in reader.MethodDefinitions)
            {
                MethodDefinition method = reader.GetMethodDefinition(handle);
                if (IsOwnTypeOfCompiler(method.GetDeclaringType()))
                    continue;
                bool isMade = IsMade(handle);
                if (isMade && Name(handle) is ".ctor" or ".cctor")
                    continue;
                output.WriteLine($"{(isMade ? 1 : 0)}\t{text.Method(method, assembly, FullName(method.GetDeclaringType()), Name(handle))}" +
                    $"\t{Expected(handle, isMade)}");
            }
        }

        // ---- what is expected ------------------------------------------------------------------

        private string Expected(MethodDefinitionHandle handle, bool isMade)
        {
            MethodDefinition method = reader.GetMethodDefinition(handle);
            if (isMade && machines.TryGetValue(method.GetDeclaringType(), out var machine))
            {
                string of = Source(machine.Method);
                if (of == null)
                    return "?";
                return Name(handle) == "MoveNext" ? $"={machine.Word} {Layer(machine.Method)}{of}" : $"$ {Layer(machine.Method)}{of}";
            }
            string source = Source(handle);
            return source == null ? "?" : $"={Layer(handle)}{source}";
        }

        // "lambda in " and the like, for what is used only by another method.
        private string Layer(MethodDefinitionHandle handle)
        {
            string name = Name(handle);
            if (IsEntry(handle))
                return name == "<Main>" ? "entry point " : "";
            int bar = name.LastIndexOf('|'), word = name.IndexOf(">g__", StringComparison.Ordinal);
            if (!name.StartsWith('<') || name.EndsWith('$'))
                return "";
            return word < 0 || bar < word ? "lambda in " : "local " + name[(word + 4)..bar] + " in ";
        }

        // The method of the source that this one is made of, with its type; null: not known.
        private string Source(MethodDefinitionHandle handle)
        {
            var seen = new HashSet<MethodDefinitionHandle>();
            if (Name(handle) == "<Clone>$")
                return Display(reader.GetMethodDefinition(handle).GetDeclaringType()) + ".with";
            while (IsMade(handle) && !IsEntry(handle))
            {
                TypeDefinitionHandle type = reader.GetMethodDefinition(handle).GetDeclaringType();
                if (!seen.Add(handle))
                    return null;
                if (machines.TryGetValue(type, out var machine))
                    handle = machine.Method;
                else if (users.TryGetValue(handle, out var by) && by.Any(user => !seen.Contains(user)))
                    handle = by.First(user => !seen.Contains(user));
                else
                    return null;
            }
            string owner = Display(reader.GetMethodDefinition(handle).GetDeclaringType()), name = Name(handle);
            if (owner.Contains('<'))
                return null;
            if (name is ".ctor" or ".cctor")
                return (name == ".ctor" ? "new " : "static ") + owner;
            if (IsEntry(handle))
                return owner + ".Main";
            if (name.Contains("op_"))
                return null;
            // An indexer has parameters, which a name of what it is made of does not have.
            if (accessors.TryGetValue(handle, out string accessor))
                return accessor == null ? null : owner + "." + accessor;
            // What implements an accessor of an interface is in no table of properties.
            return IsAccessor(name) && name.Contains('.') ? null : owner + "." + WithoutArguments(name);
        }

        private static bool IsAccessor(string name) =>
            new[] { "get_", "set_", "add_", "remove_" }.Any(word => name.Contains("." + word));

        private static string WithoutArguments(string name)
        {
            var kept = new System.Text.StringBuilder();
            int depth = 0;
            foreach (char letter in name)
            {
                depth += letter == '<' ? 1 : 0;
                if (depth == 0)
                    kept.Append(letter);
                depth -= letter == '>' ? 1 : 0;
            }
            return kept.ToString();
        }

        private bool IsEntry(MethodDefinitionHandle handle) => Name(handle) is "<Main>$" or "<Main>";

        private bool IsMade(MethodDefinitionHandle handle)
        {
            if (Name(handle).StartsWith('<'))
                return true;
            for (TypeDefinitionHandle type = reader.GetMethodDefinition(handle).GetDeclaringType(); !type.IsNil;
                 type = reader.GetTypeDefinition(type).GetDeclaringType())
                if (reader.GetString(reader.GetTypeDefinition(type).Name).StartsWith('<'))
                    return true;
            return false;
        }

        private bool IsOwnTypeOfCompiler(TypeDefinitionHandle type)
        {
            while (!reader.GetTypeDefinition(type).GetDeclaringType().IsNil)
                type = reader.GetTypeDefinition(type).GetDeclaringType();
            string name = reader.GetString(reader.GetTypeDefinition(type).Name);
            return name == "<Module>" || name.StartsWith("<>", StringComparison.Ordinal) || name.StartsWith("<Private", StringComparison.Ordinal);
        }

        // ---- what metadata says ----------------------------------------------------------------

        private string Name(MethodDefinitionHandle handle) => reader.GetString(reader.GetMethodDefinition(handle).Name);

        private string FullName(TypeDefinitionHandle handle)
        {
            TypeDefinition type = reader.GetTypeDefinition(handle);
            string name = reader.GetString(type.Name);
            if (!type.GetDeclaringType().IsNil)
                return FullName(type.GetDeclaringType()) + "+" + RuntimeText.Escape(name);
            return type.Namespace.IsNil ? RuntimeText.Escape(name) : reader.GetString(type.Namespace) + "." + RuntimeText.Escape(name);
        }

        private string Display(TypeDefinitionHandle handle)
        {
            TypeDefinition type = reader.GetTypeDefinition(handle);
            string name = reader.GetString(type.Name).Split('`')[0];
            if (!type.GetDeclaringType().IsNil)
                return Display(type.GetDeclaringType()) + "." + name;
            return type.Namespace.IsNil ? name : reader.GetString(type.Namespace) + "." + name;
        }

        private void ReadType(TypeDefinitionHandle handle)
        {
            TypeDefinition type = reader.GetTypeDefinition(handle);
            foreach (PropertyDefinitionHandle property in type.GetProperties())
            {
                PropertyDefinition row = reader.GetPropertyDefinition(property);
                PropertyAccessors pair = row.GetAccessors();
                int parameters = row.DecodeSignature(text, null).ParameterTypes.Length;
                string name = parameters > 0 ? null : WithoutArguments(reader.GetString(row.Name));
                accessors[pair.Getter] = name == null ? null : name + ".get";
                accessors[pair.Setter] = name == null ? null : name + (IsInit(pair.Setter) ? ".init" : ".set");
            }
            foreach (EventDefinitionHandle row in type.GetEvents())
            {
                EventAccessors pair = reader.GetEventDefinition(row).GetAccessors();
                string name = WithoutArguments(reader.GetString(reader.GetEventDefinition(row).Name));
                accessors[pair.Adder] = name + ".add";
                accessors[pair.Remover] = name + ".remove";
            }
            foreach (MethodDefinitionHandle method in type.GetMethods())
            {
                if (Name(method).StartsWith('<'))
                    made[(handle, Name(method))] = method;
                foreach (CustomAttributeHandle attribute in reader.GetMethodDefinition(method).GetCustomAttributes())
                    ReadAttribute(method, reader.GetCustomAttribute(attribute));
            }
        }

        private bool IsInit(MethodDefinitionHandle setter) =>
            !setter.IsNil && reader.GetMethodDefinition(setter).DecodeSignature(text, null).ReturnType.Contains("IsExternalInit");

        private void ReadAttribute(MethodDefinitionHandle method, CustomAttribute attribute)
        {
            EntityHandle type = attribute.Constructor.Kind == HandleKind.MemberReference
                ? reader.GetMemberReference((MemberReferenceHandle)attribute.Constructor).Parent
                : reader.GetMethodDefinition((MethodDefinitionHandle)attribute.Constructor).GetDeclaringType();
            string name = type.Kind == HandleKind.TypeReference
                ? reader.GetString(reader.GetTypeReference((TypeReferenceHandle)type).Name)
                : type.Kind == HandleKind.TypeDefinition ? reader.GetString(reader.GetTypeDefinition((TypeDefinitionHandle)type).Name) : "";
            string word = name switch
            {
                "AsyncStateMachineAttribute" or "AsyncIteratorStateMachineAttribute" => "async",
                "IteratorStateMachineAttribute" => "iterator",
                _ => null,
            };
            if (word == null)
                return;
            BlobReader value = reader.GetBlobReader(attribute.Value);
            value.ReadUInt16();
            if (typesByName.TryGetValue(value.ReadSerializedString(), out TypeDefinitionHandle machine))
                machines[machine] = (method, word);
        }

        // ---- what IL says ----------------------------------------------------------------------

        private void ReadBody(MethodDefinitionHandle user)
        {
            int rva = reader.GetMethodDefinition(user).RelativeVirtualAddress;
            if (rva == 0 || (reader.GetMethodDefinition(user).ImplAttributes & MethodImplAttributes.CodeTypeMask) != MethodImplAttributes.IL)
                return;
            BlobReader il = image.GetMethodBody(rva).GetILReader();
            while (il.RemainingBytes > 0)
            {
                int code = il.ReadByte();
                if (code == 0xfe)
                    code = code << 8 | il.ReadByte();
                switch (Operands[code])
                {
                    case OperandType.InlineMethod:
                    case OperandType.InlineTok:
                        Use(user, MetadataTokens.EntityHandle(il.ReadInt32()));
                        break;
                    case OperandType.InlineNone:
                        break;
                    case OperandType.InlineSwitch:
                        int targets = il.ReadInt32();
                        il.Offset += 4 * targets;
                        break;
                    case OperandType.InlineI8:
                    case OperandType.InlineR:
                        il.Offset += 8;
                        break;
                    case OperandType.InlineVar:
                        il.Offset += 2;
                        break;
                    case OperandType.ShortInlineI:
                    case OperandType.ShortInlineVar:
                    case OperandType.ShortInlineBrTarget:
                        il.Offset += 1;
                        break;
                    default:
                        il.Offset += 4;
                        break;
                }
            }
        }

        private void Use(MethodDefinitionHandle user, EntityHandle used)
        {
            if (used.Kind == HandleKind.MethodSpecification)
                used = reader.GetMethodSpecification((MethodSpecificationHandle)used).Method;
            if (used.Kind == HandleKind.MemberReference)
            {
                MemberReference member = reader.GetMemberReference((MemberReferenceHandle)used);
                TypeDefinitionHandle owner = Definition(member.Parent);
                if (owner.IsNil || !made.TryGetValue((owner, reader.GetString(member.Name)), out MethodDefinitionHandle method))
                    return;
                used = method;
            }
            if (used.Kind != HandleKind.MethodDefinition || !Name((MethodDefinitionHandle)used).StartsWith('<') ||
                (MethodDefinitionHandle)used == user)
                return;
            if (!users.TryGetValue((MethodDefinitionHandle)used, out HashSet<MethodDefinitionHandle> list))
                users[(MethodDefinitionHandle)used] = list = new HashSet<MethodDefinitionHandle>();
            list.Add(user);
        }

        // The type of this file that a TypeSpec is an instance of.
        private TypeDefinitionHandle Definition(EntityHandle parent)
        {
            if (parent.Kind != HandleKind.TypeSpecification)
                return default;
            BlobReader blob = reader.GetBlobReader(reader.GetTypeSpecification((TypeSpecificationHandle)parent).Signature);
            if (blob.ReadSignatureTypeCode() != SignatureTypeCode.GenericTypeInstance)
                return default;
            blob.ReadSignatureTypeCode();
            EntityHandle type = blob.ReadTypeHandle();
            return type.Kind == HandleKind.TypeDefinition ? (TypeDefinitionHandle)type : default;
        }
    }
}
